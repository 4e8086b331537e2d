"""What a file says of services of other sites, and of where other services find this one. Reports, never raises."""

from __future__ import annotations

from collections.abc import Sequence

from srm_spark.config.keys_sites import (
    ADVERTISED_FACTOR_KEY,
    ADVERTISED_HOST_KEY,
    ADVERTISED_PATH_KEY,
    ADVERTISED_PORT_KEY,
    ADVERTISED_PROTOCOL_KEY,
    REMOTE_CA_KEY,
    REMOTE_PASSWORD_KEY,
    REMOTE_TARGETS_KEY,
    REMOTE_TOKEN_KEY,
    REMOTE_USER_KEY,
)
from srm_spark.config.settings import AdvertisedSettings, RemoteSettings
from srm_spark.config.spelling import did_you_mean
from srm_spark.config.values import Values
from srm_spark.core.advertised import is_host, is_path

_LOGIN_KEYS = (REMOTE_USER_KEY, REMOTE_PASSWORD_KEY, REMOTE_TOKEN_KEY, REMOTE_CA_KEY)


def advertised_settings(values: Values) -> AdvertisedSettings:
    """What of its own address a service says otherwise."""
    host = values.text(ADVERTISED_HOST_KEY).removeprefix("[").removesuffix("]") or None
    if values.is_set(ADVERTISED_HOST_KEY) and (host is None or not is_host(host)):
        values.refuse(ADVERTISED_HOST_KEY, "is no name or address of a host", "write the port by its own key")
        host = None
    path = values.text(ADVERTISED_PATH_KEY).removesuffix("/")
    if not is_path(path):
        hint = f"write {ADVERTISED_PATH_KEY} = /srm, with letters, digits and ._~- between slashes"
        values.refuse(ADVERTISED_PATH_KEY, f"got {path!r}; allowed a path that begins with a slash", hint)
        path = ""
    return AdvertisedSettings(
        values.text(ADVERTISED_PROTOCOL_KEY) or None,
        host,
        values.optional_number(ADVERTISED_PORT_KEY),
        path,
        values.optional_number(ADVERTISED_FACTOR_KEY),
    )


def remote_settings(values: Values, aliases: Sequence[str], own: Sequence[str]) -> RemoteSettings | None:
    """Of which sites a service asks, and as whom; None where of none. `own` are the targets that it reads itself."""
    targets = values.names(REMOTE_TARGETS_KEY)
    if not targets:
        for key in filter(values.is_set, _LOGIN_KEYS):
            values.refuse(key, f"has no effect without {REMOTE_TARGETS_KEY}", "write both or none")
        return None
    _check_targets(values, targets, aliases, own)
    _check_login(values)
    user, password, token, authority = (values.text(key) or None for key in _LOGIN_KEYS)
    return RemoteSettings(targets, user, password, token, authority)


def _check_targets(values: Values, targets: Sequence[str], aliases: Sequence[str], own: Sequence[str]) -> None:
    for alias in targets:
        if alias not in aliases:
            message = f"got unknown alias {alias}; allowed {', '.join(aliases)}"
            values.refuse(REMOTE_TARGETS_KEY, message, did_you_mean(alias, aliases))
        elif alias in own:
            message = f"got {alias}, which is a target of this service itself"
            values.refuse(REMOTE_TARGETS_KEY, message, "name it once: read here, or asked there")
    if aliases and set(aliases) <= set(targets):
        values.refuse(REMOTE_TARGETS_KEY, "leaves no cluster to read itself", "leave out that of this site")


def _check_login(values: Values) -> None:
    for key in filter(values.is_set, _LOGIN_KEYS):
        if not values.text(key):
            values.refuse(key, "is empty", "give a value or remove the line")
    for one, other in ((REMOTE_USER_KEY, REMOTE_PASSWORD_KEY), (REMOTE_PASSWORD_KEY, REMOTE_USER_KEY)):
        if values.is_set(one) and not values.is_set(other):
            values.refuse(one, f"is set, but {other} is not", "write both or none")
    user, token = values.text(REMOTE_USER_KEY), values.text(REMOTE_TOKEN_KEY)
    if user and token:
        values.refuse(REMOTE_TOKEN_KEY, f"is set beside {REMOTE_USER_KEY}", "log in by one of them")
    if ":" in user:
        values.refuse(REMOTE_USER_KEY, "is no name of a user: it has a colon")
    if not (token.isascii() and token.isprintable()):
        values.refuse(REMOTE_TOKEN_KEY, "is no token: it has characters that no header can hold")
