"""Rows for the keys of logins by an OpenID provider."""

from __future__ import annotations

from srm_spark.config.schema import Key, KeyEffect, Scope, ValueKind

ISSUER_KEY = "service.oidc.issuer"
CLIENT_ID_KEY = "service.oidc.client.id"
CLIENT_SECRET_KEY = "service.oidc.client.secret"  # noqa: S105 - the name of a key
REDIRECT_KEY = "service.oidc.redirect"
AUDIENCE_KEY = "service.oidc.audience"
ROLES_FILE_KEY = "service.oidc.roles.file"
ROLES_CLAIM_KEY = "service.oidc.roles.claim"
NAME_CLAIM_KEY = "service.oidc.name.claim"
SCOPES_KEY = "service.oidc.scopes"
SESSION_KEY = "service.oidc.session.minutes"


def _row(
    name: str, does: str, kind: ValueKind = ValueKind.TEXT, default: str | None = None, high: int | None = None
) -> Key:
    low = None if high is None else 1
    return Key(name, kind, default, Scope.TOP, KeyEffect.HONOURED, does, low=low, high=high)


OIDC = (
    _row(ISSUER_KEY, "The OpenID provider by which people and programs log in to `srm-service`, `https://…`."),
    _row(CLIENT_ID_KEY, "As what the provider knows `srm-service`; people log in by a browser then."),
    _row(CLIENT_SECRET_KEY, "Its secret there; without one it is a public client. PKCE is used in any case."),
    _row(
        REDIRECT_KEY, "The address of `srm-service` for browsers, with the path `/login/done`, as the provider has it."
    ),
    _row(AUDIENCE_KEY, "Programs may send access tokens that are for this audience; unset: none are taken."),
    _row(ROLES_FILE_KEY, "File with a line `group:roles` for each group of the provider that may do something."),
    _row(ROLES_CLAIM_KEY, "The claim that lists groups; `a.b` is `b` within `a`.", default="groups"),
    _row(NAME_CLAIM_KEY, "The claim by which users are called; else `sub`.", default="preferred_username"),
    _row(SCOPES_KEY, "What the provider is asked for when people log in.", ValueKind.LIST, "openid,profile"),
    _row(SESSION_KEY, "Minutes until a browser has to log in again.", ValueKind.INT, "480", high=7 * 24 * 60),
)
