"""One broker with a listener per way of logging in, and an authorizer that refuses whatever is not allowed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from srm_spark.testing import LocalKafka
from srm_spark.testing.cluster import ExternalKafka
from srm_spark.testing.java import QUICK_START
from srm_spark.testing.ports import free_ports
from tests.certificates import Identity, identity, write_jks, write_keystore, write_truststore
from tests.identity_provider import AUDIENCE, IdentityProvider
from tests.kafka_io import Kafka

PASSWORD = "store-Pass-4711"
_ADMIN = ("admin", "admin-Secret-1")
_LISTENERS = {"TLS": "SSL", "MTLS": "SSL", "SCRAM": "SASL_PLAINTEXT", "PLAIN": "SASL_SSL", "OAUTH": "SASL_SSL"}
_MODULES = "org.apache.kafka.common.security"
_OAUTH = f"{_MODULES}.oauthbearer"
_QUIET = logging.getLogger("tests.librdkafka")


class Acl(NamedTuple):
    """One thing that somebody may do; a name that ends in `*` is a prefix."""

    operation: str
    kind: str
    name: str


@dataclass(frozen=True)
class Stores:
    """The authority of both brokers and what it signed."""

    folder: Path
    ca: Identity
    client: Identity

    def path(self, name: str) -> str:
        """Of a store: trust and client as p12, jks and pem (of the client with an encrypted key), server.p12."""
        return str(self.folder / name)


def make_stores(folder: Path) -> Stores:
    """Stores of all kinds, under one password."""
    ca = identity("ca", is_ca=True)
    server, client = identity("server", ca), identity("client", ca)
    write_keystore(folder / "server.p12", server, [ca], PASSWORD)
    write_keystore(folder / "client.p12", client, [ca], PASSWORD)
    for kind in ("p12", "pem"):
        write_truststore(folder / f"trust.{kind}", ca, PASSWORD)
    for name in ("client", "trust"):
        write_jks(folder / f"{name}.p12", PASSWORD)
    (folder / "client.pem").write_text(client.encrypted_pem(PASSWORD) + client.certificate_pem)
    return Stores(folder, ca, client)


@dataclass(frozen=True)
class SecuredKafka:
    """The broker; `at(listener)` is what an alias of a configuration points to."""

    broker: LocalKafka
    ports: Mapping[str, int]
    stores: Stores

    def at(self, listener: str) -> ExternalKafka:
        """The broker as clients of one listener see it."""
        return ExternalKafka(listener, f"127.0.0.1:{self.ports[listener]}")

    @property
    def kafka(self) -> Kafka:
        """The tests' own access, by an administrator."""
        user, password = _ADMIN
        return Kafka(
            self.at("PLAIN"),
            security_protocol="sasl_ssl",
            sasl_mechanism="PLAIN",
            sasl_username=user,
            sasl_password=password,
            ssl_ca_location=self.stores.path("trust.pem"),
        )

    def allow(self, principal: str, acls: Iterable[Acl]) -> None:
        """Let somebody do these things."""
        bindings = [_binding(principal, acl) for acl in acls]
        admin = self._admin()  # its futures end with it
        for future in admin.create_acls(bindings).values():
            future.result(30)

    def _admin(self) -> AdminClient:
        user, password = _ADMIN
        options: dict[str, str | int | float | bool] = {
            "bootstrap.servers": self.at("PLAIN").bootstrap_servers,
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": password,
            "ssl.ca.location": self.stores.path("trust.pem"),
        }
        return AdminClient(options, logger=_QUIET)


def scram_login(user: str, password: str) -> dict[str, str]:
    """Properties of a client of the listener SCRAM."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": f'{_MODULES}.scram.ScramLoginModule required username="{user}" password="{password}";',
    }


@contextmanager
def secured_kafka(
    name: str, stores: Stores, provider: IdentityProvider | None = None, users: Mapping[str, str] = {}
) -> Iterator[SecuredKafka]:
    """A broker that knows `users` with their passwords, by PLAIN and by both SCRAMs."""
    listeners = [listener for listener in _LISTENERS if listener != "OAUTH" or provider is not None]
    ports = dict(zip(listeners, free_ports(len(listeners)), strict=True))
    scram = [
        argument
        for user, password in users.items()
        for hashed in ("256", "512")
        for argument in ("--add-scram", f"SCRAM-SHA-{hashed}=[name={user},password={password}]")
    ]
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.keys_url}" if provider else "-Dnone=none"
    broker = LocalKafka(
        name,
        overrides=_settings(ports, stores, provider, {**users, _ADMIN[0]: _ADMIN[1]}),
        jvm_options=(*QUICK_START, allowed),
        format_arguments=scram,
    )
    with broker:
        yield SecuredKafka(broker, ports, stores)


def _settings(
    ports: Mapping[str, int], stores: Stores, provider: IdentityProvider | None, users: Mapping[str, str]
) -> dict[str, str]:
    listeners = [f"{name}://127.0.0.1:{port}" for name, port in ports.items()]
    protocols = {**{name: _LISTENERS[name] for name in ports}, "CONTROLLER": "SASL_PLAINTEXT"}
    user, password = _ADMIN
    known = " ".join(f'user_{name}="{secret}"' for name, secret in users.items())
    plain = f'{_MODULES}.plain.PlainLoginModule required username="{user}" password="{password}" {known};'
    scram = f"{_MODULES}.scram.ScramLoginModule required;"
    return {
        "listeners": ",".join((*listeners, "CONTROLLER://127.0.0.1:{controller_port}")),
        "advertised.listeners": ",".join(listeners),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "inter.broker.listener.name": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{user}",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": stores.path("server.p12"),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": stores.path("trust.p12"),
        "ssl.truststore.password": PASSWORD,
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        **{f"listener.name.scram.scram-sha-{hashed}.sasl.jaas.config": scram for hashed in ("256", "512")},
        **{f"listener.name.{name}.sasl.enabled.mechanisms": "PLAIN" for name in ("plain", "controller")},
        **{f"listener.name.{name}.plain.sasl.jaas.config": plain for name in ("plain", "controller")},
        **(_oauth(provider) if provider else {}),
    }


def _oauth(provider: IdentityProvider) -> dict[str, str]:
    return {
        "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.oauth.oauthbearer.sasl.jaas.config": f"{_OAUTH}.OAuthBearerLoginModule required;",
        "listener.name.oauth.oauthbearer.sasl.server.callback.handler.class": (
            f"{_OAUTH}.OAuthBearerValidatorCallbackHandler"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }


def _binding(principal: str, acl: Acl) -> AclBinding:
    is_prefix = acl.name.endswith("*") and acl.name != "*"
    return AclBinding(
        ResourceType.BROKER if acl.kind == "CLUSTER" else ResourceType[acl.kind],  # librdkafka's name of it
        acl.name.removesuffix("*") if is_prefix else acl.name,
        ResourcePatternType.PREFIXED if is_prefix else ResourcePatternType.LITERAL,
        f"User:{principal}",
        "*",
        AclOperation[acl.operation],
        AclPermissionType.ALLOW,
    )
