"""Who somebody is by the word of a provider: by a token that a program sends, or by a browser that comes back."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import jwt

from srm_spark.api.attempts import Attempts
from srm_spark.api.oidc.errors import TokenRefused
from srm_spark.api.oidc.groups import GroupRoles, groups_of, name_of
from srm_spark.api.oidc.keys import Keys
from srm_spark.api.oidc.provider import Provider
from srm_spark.api.oidc.sessions import Identity, Sessions
from srm_spark.api.root import root
from srm_spark.config.settings import OidcSettings

LOGIN_SECONDS = 600
"""For who types a password, and a second factor."""
_MOST_USED = 10_000
_OWN_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]*")
"""Of this service: what browsers would take for another host, by two slashes, a backslash or a tab, is none."""
_LONGEST_PATH = 2000


@dataclass(frozen=True)
class Begun:
    """A login that a browser was sent away for."""

    address: str
    """Of the provider."""
    cookie: str
    """What the browser is to bring back with the answer."""


class Oidc:
    """Safe to use from several threads. What asks the provider may take seconds."""

    def __init__(
        self,
        settings: OidcSettings,
        roles: GroupRoles,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` in seconds since the epoch."""
        self.settings, self.roles, self._clock = settings, roles, clock
        self.provider = Provider(settings, monotonic)
        self.sessions = Sessions(settings.session_minutes * 60, monotonic)
        self.attempts = Attempts(monotonic)
        self._keys = Keys(self.provider.keys, monotonic)
        self._secret = secrets.token_bytes(32)
        self._used: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def has_people(self) -> bool:
        """Whether people log in by a browser."""
        return bool(self.settings.client_id)

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach the service by TLS."""
        return self.settings.redirect.startswith("https:")

    def cookie(self, name: str) -> str:
        """Its whole name; by TLS no other host, and no page without TLS, can set one that is called like this.

        Below a root path other applications have the same host, and are not to get it: such a one has another prefix.
        """
        prefix = "__Secure-" if root() else "__Host-"
        return f"{prefix}srm-{name}" if self.is_secure else f"srm-{name}"

    def by_token(self, token: str) -> Identity:
        """Whose access token it is. Raises TokenRefused and ProviderSilent."""
        if not self.settings.audience:
            raise TokenRefused("is a token, and none are taken")
        claims = self._keys.claims(token, self.settings.issuer, self.settings.audience)
        if "nonce" in claims:
            raise TokenRefused("is an ID token, which is for browsers")
        return self._identity(claims)

    def begin(self, path: str) -> Begun:
        """Begin a login that leads to a path of this service. Raises ProviderSilent."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        kept = {"state": state, "nonce": nonce, "verifier": verifier, "path": own_path(path)}
        asked = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": self.settings.redirect,
            "scope": " ".join(self.settings.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge_of(verifier),
            "code_challenge_method": "S256",
        }
        endpoint = self.provider.endpoint("authorization_endpoint")
        cookie = jwt.encode({**kept, "exp": int(self._clock()) + LOGIN_SECONDS}, self._secret, "HS256")
        return Begun(f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(asked)}", cookie)

    def finish(self, cookie: str, state: str, code: str, issuer: str | None) -> tuple[Identity, str]:
        """Who has logged in, and the path he wanted. Raises TokenRefused and ProviderSilent."""
        kept = self._kept(cookie)
        if kept["state"] != state:
            raise TokenRefused("the answer belongs to another login")
        if issuer is not None and issuer != self.settings.issuer:
            raise TokenRefused("the answer is of another provider")
        with self._lock:
            if state in self._used:
                raise TokenRefused("the answer was used already")
            self._used[state] = None
            while len(self._used) > _MOST_USED:
                self._used.popitem(last=False)
        token = self.provider.exchange(code, kept["verifier"])
        claims = self._keys.claims(token, self.settings.issuer, self.settings.client_id)
        if claims.get("nonce") != kept["nonce"]:
            raise TokenRefused("the ID token belongs to another login")
        if claims.get("azp", self.settings.client_id) != self.settings.client_id:
            raise TokenRefused("the ID token is for another client")
        return self._identity(claims), kept["path"]

    def _kept(self, cookie: str) -> Mapping[str, str]:
        try:
            kept: Mapping[str, str] = jwt.decode(
                cookie, self._secret, algorithms=["HS256"], options={"require": ["exp"], "verify_exp": False}
            )
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise TokenRefused("this browser has begun no login, or the service has started anew since") from error
        if self._clock() >= int(kept["exp"]):
            raise TokenRefused(f"the login took longer than {LOGIN_SECONDS // 60} minutes")
        return kept

    def _identity(self, claims: Mapping[str, Any]) -> Identity:
        settings = self.settings
        return Identity(name_of(claims, settings.name_claim), groups_of(claims, settings.roles_claim))


def challenge_of(verifier: str) -> str:
    """What the provider is shown of it before (RFC 7636, S256)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def own_path(text: str) -> str:
    """A path of this service; the overview where it is none, or one of logins."""
    is_own = len(text) <= _LONGEST_PATH and _OWN_PATH.fullmatch(text) and not text.startswith(("/login", "/logout"))
    return text if is_own else "/"
