"""Runs the application: where it listens, to whom it answers, until it is told to stop."""

from __future__ import annotations

import ipaddress
import logging
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Protocol

import uvicorn

from srm_spark.api.app import make_app
from srm_spark.api.audit import Audit
from srm_spark.api.certificate import certificate_watch, why_unfit
from srm_spark.api.control import Control
from srm_spark.api.feed import Feed
from srm_spark.api.gateway import Gateway
from srm_spark.api.moves import recovery_of
from srm_spark.api.oidc.groups import GroupRoles, read_groups
from srm_spark.api.oidc.logins import Oidc
from srm_spark.api.patience import PatientProtocol
from srm_spark.api.roles import Role, role_of
from srm_spark.api.site_call import Client, trusting
from srm_spark.api.told import flows_told
from srm_spark.api.users import Users, read_users
from srm_spark.api.watching import table_watch
from srm_spark.api.webhook import Webhook
from srm_spark.config.keys_oidc import ISSUER_KEY
from srm_spark.config.keys_process import (
    SERVICE_ANONYMOUS_KEY,
    SERVICE_CERTIFICATE_KEY,
    SERVICE_LISTEN_KEY,
    SERVICE_MOVES_KEY,
    SERVICE_USERS_KEY,
)
from srm_spark.config.load import Loaded
from srm_spark.config.settings import FlowSettings, RemoteSettings, ServiceSettings
from srm_spark.core.wording import some
from srm_spark.errors import ConfigError, Problem, SetupError
from srm_spark.look.advertiser import Advertiser, own_address
from srm_spark.look.board import Board
from srm_spark.look.metrics_reader import Readers
from srm_spark.look.sites import Site, SiteReaders
from srm_spark.past.process import HistoryProcess
from srm_spark.past.reading import History

_log = logging.getLogger(__name__)
_HEADER_BYTES = 16 * 1024
_CONNECTIONS = 200
_GRACE_SECONDS = 5


def serve(service: ServiceSettings, flows: Sequence[FlowSettings], loaded: Loaded, *, allow_anonymous: bool) -> None:
    """Serve until SIGTERM or Ctrl-C: of these flows, and acting on them by all that is `loaded`.

    Raises ConfigError and SetupError before anything is read.
    """
    logins = _Logins(service)
    anonymous = role_of(service.anonymous_role)
    control = Control(Audit(service.audit_path), loaded, _folder(service.moves_path))
    _check_certificate(service)
    with listening_at(service) as listening:
        is_open = is_open_to_others(service, listening, allow_anonymous=allow_anonymous)
        logins.warn_of_unknown(flows)
        if is_open and service.has_logins and service.certificate is None:
            text = "passwords and tokens cross the network as they are: set %s and its key"
            _log.warning(text, SERVICE_CERTIFICATE_KEY)
        kept = service.history
        board = Board([one.flow for one in flows], past=None if kept is None else History(kept))
        is_closed = not service.has_logins and not allow_anonymous
        certificate = None if service.certificate is None else Path(service.certificate)
        sites = None if service.remote is None else _Sites(service.remote, flows, loaded)
        app = make_app(
            board,
            logins.users,
            oidc=logins.oidc,
            anonymous=anonymous,
            only_local=is_closed,
            control=control,
            certificate=certificate,
            gateway=None if sites is None else sites.gateway,
            root=service.advertised.path,
        )
        config = uvicorn.Config(
            app,
            http=PatientProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=_HEADER_BYTES,
            limit_concurrency=_CONNECTIONS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            ssl_certfile=service.certificate,
            ssl_keyfile=service.key,
        )
        scheme = "http" if service.certificate is None else "https"
        beside: list[_Beside] = [Readers(board, flows)]
        beside.extend(logins.watches())
        if kept is not None and kept.is_embedded:
            beside.append(HistoryProcess(flows, kept))
        if service.alerts is not None:
            address_of_pages = f"{scheme}://{_written(service)}"
            beside.append(Webhook(board, service.alerts, address_of_pages, partial(recovery_of, control)))
        if service.certificate is not None:
            config.load()
            assert config.ssl is not None
            beside.append(certificate_watch(config.ssl, service.certificate, service.key))
        if sites is not None:
            beside.extend((sites.readers, *sites.watches))
        if (address := own_address(service, is_local=not is_open)) is not None:
            _log.info("other services find this one at %s", address.url)
            beside.append(Advertiser(address, flows, service.advertised.replication_factor))
        with ExitStack() as running:
            for one in beside:
                one.start()
                running.callback(one.stop)
            _log.info("listening on %s://%s; flows %s", scheme, _written(service), ", ".join(map(str, board.flows)))
            _run(Server(config, app.state.feed), listening)
        _log.info("stopped")


def is_open_to_others(service: ServiceSettings, listening: socket.socket, *, allow_anonymous: bool) -> bool:
    """Whether other machines reach it there. Raises SetupError where these may do more than was meant."""
    if ipaddress.ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback:
        return False
    anonymous = role_of(service.anonymous_role)
    where, logins = f"{SERVICE_LISTEN_KEY} = {_written(service)}", f"set {SERVICE_USERS_KEY} or {ISSUER_KEY}"
    if not service.has_logins and not allow_anonymous:
        found = f"{where} is open to other machines, and nobody has to log in"
        raise SetupError(found, f"{logins}, or say --allow-anonymous")
    if not service.has_logins and anonymous is not Role.VIEWER:
        key = f"{SERVICE_ANONYMOUS_KEY} = {anonymous.word}"
        found = f"{key} is for a service that only its own machine reaches, and {where} is open to others"
        raise SetupError(found, logins)
    return True


class _Logins:
    """Who may log in, by a file, by a provider, or by both."""

    def __init__(self, service: ServiceSettings) -> None:
        oidc, self._file = service.oidc, service.users_file
        self.users = None if self._file is None else Users(read_users(self._file))
        self.oidc = None if oidc is None else Oidc(oidc, GroupRoles(read_groups(oidc.roles_file)))

    def warn_of_unknown(self, flows: Sequence[FlowSettings]) -> None:
        """Say which flows have roles and are not here."""
        named: dict[str | None, set[str]] = {}
        if self.users is not None:
            named[self._file] = self.users.flows
        if self.oidc is not None:
            named[self.oidc.settings.roles_file] = self.oidc.roles.flows
        for path, found in named.items():
            if unknown := found - {str(one.flow) for one in flows}:
                _log.warning("%s has roles of flows that are not here: %s", path, some(unknown))

    def watches(self) -> Iterator[_Beside]:
        """What reads the files again when they change."""
        if self.users is not None and self._file is not None:
            yield table_watch(self._file, read_users, self.users)
        if self.oidc is not None:
            yield table_watch(self.oidc.settings.roles_file, read_groups, self.oidc.roles)


class _Beside(Protocol):
    """What runs as long as the service does."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class _Sites:
    """Other sites: where their services are is read, and they are asked."""

    def __init__(self, remote: RemoteSettings, flows: Sequence[FlowSettings], loaded: Loaded) -> None:
        settings = loaded.settings
        sites = [Site(alias) for alias in remote.targets]
        self.readers = SiteReaders(sites, [settings.clusters[alias] for alias in remote.targets])
        own, written = [one.flow for one in flows], [one.flow for one in settings.flows]
        client = Client(remote)
        self.gateway = Gateway(sites, client.get, flows_told, own=own, expected=written)
        self.watches = [] if remote.ca_file is None else [table_watch(remote.ca_file, trusting, client)]


class Server(uvicorn.Server):
    """Ends streams, which have no end, before it waits for the answers that are under way."""

    def __init__(self, config: uvicorn.Config, feed: Feed) -> None:
        super().__init__(config)
        self._feed = feed

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As it was, behind that."""
        self._feed.end()
        await super().shutdown(sockets)


def _run(server: uvicorn.Server, listening: socket.socket) -> None:
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # what else it has to say, is said here
    # The server takes signals for itself, and raises them once more when it has stopped: that is no reason to die.
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        server.run(sockets=[listening])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _written(service: ServiceSettings) -> str:
    host = f"[{service.host}]" if ":" in service.host else service.host
    return f"{host}:{service.port}"


def listening_at(service: ServiceSettings) -> socket.socket:
    """A socket that listens where it shall. Raises SetupError where that cannot be."""
    try:
        found = socket.getaddrinfo(service.host, service.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _cannot_listen(service, error) from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError as error:
        listening.close()
        raise _cannot_listen(service, error) from error
    return listening


def _cannot_listen(service: ServiceSettings, error: OSError) -> SetupError:
    text = f"cannot listen on {_written(service)}: {error.strerror or error}"
    return SetupError(text, f"end what listens there, or set {SERVICE_LISTEN_KEY} to another host:port")


def _folder(path: str) -> Path:
    if not Path(path).is_dir() or not os.access(path, os.W_OK | os.X_OK):
        hint = "make it, for the user of the service alone"
        raise ConfigError([Problem(path, SERVICE_MOVES_KEY, "is no directory that can be written", hint)])
    return Path(path)


def _check_certificate(service: ServiceSettings) -> None:
    if service.certificate is None:
        return
    if (reason := why_unfit(service.certificate, service.key)) is not None:
        hint = "name a certificate chain and its key without a password, both in PEM"
        where = f"{service.certificate}, {service.key}"
        raise ConfigError([Problem(where, SERVICE_CERTIFICATE_KEY, f"cannot be used: {reason}", hint)])
