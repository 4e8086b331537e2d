"""What a file says of logins by an OpenID provider. Reports, never raises, and looks at no file."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from srm_spark.config.keys_oidc import (
    AUDIENCE_KEY,
    CLIENT_ID_KEY,
    CLIENT_SECRET_KEY,
    ISSUER_KEY,
    NAME_CLAIM_KEY,
    OIDC,
    REDIRECT_KEY,
    ROLES_CLAIM_KEY,
    ROLES_FILE_KEY,
    SCOPES_KEY,
    SESSION_KEY,
)
from srm_spark.config.keys_sites import ADVERTISED_PATH_KEY
from srm_spark.config.settings import LOGIN_DONE, OidcSettings
from srm_spark.config.values import Values


def oidc_settings(values: Values) -> OidcSettings | None:
    """The provider, and what it is asked for; None where there is none."""
    if not values.is_set(ISSUER_KEY):
        for key in OIDC:
            if values.is_set(key.name) and values.text(key.name) != key.default:
                values.refuse(key.name, f"has no effect without {ISSUER_KEY}", "write both or none")
        return None
    found = OidcSettings(
        values.text(ISSUER_KEY),
        values.text(ROLES_FILE_KEY),
        client_id=values.text(CLIENT_ID_KEY),
        client_secret=values.text(CLIENT_SECRET_KEY),
        redirect=values.text(REDIRECT_KEY),
        audience=values.text(AUDIENCE_KEY),
        roles_claim=values.text(ROLES_CLAIM_KEY),
        name_claim=values.text(NAME_CLAIM_KEY),
        scopes=values.names(SCOPES_KEY),
        session_minutes=values.number(SESSION_KEY),
    )
    _check(values, found)
    return found


def _check(values: Values, found: OidcSettings) -> None:
    for key, value in ((ISSUER_KEY, found.issuer), (REDIRECT_KEY, found.redirect)):
        if values.is_set(key) and not is_safe_url(value):
            hint = f"write {key} = https://…"
            values.refuse(key, f"got {value!r}; allowed https://…, and http://… of this machine", hint)
    if not found.roles_file:
        values.refuse(ROLES_FILE_KEY, "is missing: nobody would have a role", f"write {ROLES_FILE_KEY} = FILE")
    if not found.client_id and not found.audience:
        values.refuse(ISSUER_KEY, f"lets nobody in without {CLIENT_ID_KEY} (people) or {AUDIENCE_KEY} (programs)")
    for one, other in (
        (CLIENT_ID_KEY, REDIRECT_KEY),
        (REDIRECT_KEY, CLIENT_ID_KEY),
        (CLIENT_SECRET_KEY, CLIENT_ID_KEY),
    ):
        if values.text(one) and not values.text(other):
            values.refuse(one, f"is set, but {other} is not", "write both or none")
    done = values.text(ADVERTISED_PATH_KEY).removesuffix("/") + LOGIN_DONE
    if found.redirect and urlsplit(found.redirect).path != done:
        values.refuse(REDIRECT_KEY, f"got {found.redirect!r}; allowed the service's own address with {done}")
    if "openid" not in found.scopes:
        values.refuse(SCOPES_KEY, "lacks openid, without which nobody is told who logs in", "add openid")
    for key, text in ((ROLES_CLAIM_KEY, found.roles_claim), (NAME_CLAIM_KEY, found.name_claim)):
        if not text:
            values.refuse(key, "got ''; allowed the name of a claim", "give a value or remove the line")


def is_safe_url(text: str) -> bool:
    """https, or http to this very machine; nothing but host and path."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    if not host or parts.query or parts.fragment or parts.username is not None or not text.isascii() or " " in text:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))


def is_loopback(host: str) -> bool:
    """Whether that name or address is this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
