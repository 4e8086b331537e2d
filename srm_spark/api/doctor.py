"""What a service needs, checked before it starts; a check that fails stops no other, and nothing is changed."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from srm_spark.api.certificate import why_unfit
from srm_spark.api.oidc.groups import read_groups
from srm_spark.api.server import is_open_to_others, listening_at
from srm_spark.api.users import read_users
from srm_spark.config.keys_process import (
    HISTORY_PATH_KEY,
    SERVICE_AUDIT_KEY,
    SERVICE_CERTIFICATE_KEY,
    SERVICE_MOVES_KEY,
)
from srm_spark.config.load import load
from srm_spark.config.settings import HistorySettings, ServiceSettings
from srm_spark.config.stores import StoreError, end_of_certificate
from srm_spark.doctor import Finding, read_configuration
from srm_spark.doctor.clusters import CLUSTER_SECONDS
from srm_spark.doctor.machine import check_jars, check_java, check_python, check_scala, check_spark
from srm_spark.doctor.report import failed, ok, unknown, warned
from srm_spark.doctor.reports import check_reports
from srm_spark.errors import ConfigError, SetupError

_DAY_SECONDS = 86_400.0
_SOON_DAYS = 14.0


def examine_service(
    configs: Sequence[Path],
    overrides: Mapping[str, str] = {},
    *,
    allow_anonymous: bool = False,
    seconds: float = CLUSTER_SECONDS,
    clock: Callable[[], float] = time.time,
) -> list[Finding]:
    """All findings, in the order in which they should be mended; each target has `seconds`."""
    findings = [check_python()]
    loaded, found = read_configuration(lambda: load(configs, overrides))
    if loaded is not None:  # again, with the flows that it is asked to tell of, whatever this machine's driver runs
        into = loaded.settings.service.targets or list(loaded.settings.clusters)
        loaded, found = read_configuration(lambda: load(configs, overrides, into=into))
    findings += found
    if loaded is None:
        return findings
    service = loaded.settings.service
    findings += check_service(service, allow_anonymous=allow_anonymous, now=clock())
    return findings + check_reports(loaded.settings.flows, lambda: int(clock() * 1000), seconds)


def check_service(service: ServiceSettings, *, allow_anonymous: bool, now: float) -> Iterator[Finding]:
    """What its own settings name: address, users, certificate, folders, whom it tells; `now` since the epoch."""
    yield _address(service, allow_anonymous=allow_anonymous)
    if service.users_file is not None:
        yield _read("users", service.users_file, read_users, "make lines with: srm-service user NAME")
    if service.oidc is not None:
        yield _read("roles of groups", service.oidc.roles_file, read_groups, "docs/service.md has lines to begin with")
    if service.certificate is not None:
        yield _certificate(service.certificate, service.key, now)
    if service.audit_path is not None:
        yield _writable("record of changes", SERVICE_AUDIT_KEY, Path(service.audit_path), is_folder=False)
    yield _writable("states of moves", SERVICE_MOVES_KEY, Path(service.moves_path), is_folder=True)
    if service.alerts is not None:
        yield _webhook(service.alerts.webhook)
    if service.history is not None:
        yield from _history(service.history)


def _address(service: ServiceSettings, *, allow_anonymous: bool) -> Finding:
    check, written = "address", f"{service.host}:{service.port}"
    try:
        with listening_at(service) as listening:
            is_open = is_open_to_others(service, listening, allow_anonymous=allow_anonymous)
    except SetupError as error:
        return failed(check, error.found, error.remedy)
    if is_open and service.has_logins and service.certificate is None:
        found = f"{written} is free; passwords and tokens cross the network as they are"
        return warned(check, found, f"set {SERVICE_CERTIFICATE_KEY} and its key")
    return ok(check, f"{written} is free{', and open to other machines' if is_open else ''}")


def _read(check: str, path: str, read: Callable[[str], object], remedy: str) -> Finding:
    try:
        read(path)
    except ConfigError as error:
        return failed(check, "; ".join(map(str, error.problems)), remedy)
    return ok(check, f"{path} can be read")


def _certificate(certificate: str, key: str | None, now: float) -> Finding:
    check = "certificate"
    if (reason := why_unfit(certificate, key)) is not None:
        hint = "name a certificate chain and its key without a password, both in PEM"
        return failed(check, f"{certificate}, {key}: {reason}", hint)
    try:
        days = (end_of_certificate(Path(certificate).read_bytes()) - now) / _DAY_SECONDS
    except (OSError, StoreError) as error:
        return unknown(check, f"{certificate}: when it ends cannot be read: {error}")
    if days < 0:
        return failed(check, f"{certificate} has ended {-days:.0f} days ago", "renew it")
    found = f"{certificate} is good for {days:.0f} days"
    return warned(check, found, "renew it") if days < _SOON_DAYS else ok(check, found)


def _writable(check: str, key: str, path: Path, *, is_folder: bool, may_be_made: bool = False) -> Finding:
    """Whether a folder, or a file in one, can be written by who runs this."""
    folder = path if is_folder else path.absolute().parent
    if is_folder and may_be_made:
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
    if path.exists() and path.is_dir() is not is_folder:
        return failed(check, f"{path} is no {'folder' if is_folder else 'file'}", f"set {key} to another path")
    if not folder.is_dir():
        return failed(check, f"{folder} is not there", f"make it, or set {key} to another path")
    is_open = os.access(folder, os.W_OK | os.X_OK) and (is_folder or not path.exists() or os.access(path, os.W_OK))
    if not is_open:
        return failed(check, f"{path} cannot be written by who runs this", f"chown it, or set {key} to another path")
    return ok(check, f"{path} can be {'written' if path.exists() else 'made'}")


def _webhook(url: str) -> Finding:
    parts = urlsplit(url)
    where = f"{parts.scheme}://{parts.hostname}"  # the rest may hold a secret
    try:
        socket.getaddrinfo(parts.hostname, parts.port or parts.scheme, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return failed("alerts", f"{where}: {reason}; nobody would be told", "correct service.alerts.webhook")
    return ok("alerts", f"the name in {where} is known; whether alerts arrive is not tried")


def _history(history: HistorySettings) -> Iterator[Finding]:
    yield _writable("history", HISTORY_PATH_KEY, Path(history.path), is_folder=True, may_be_made=True)
    if history.is_embedded:
        yield from (check_java(), check_spark(), check_jars(), check_scala())
