"""What is asked of an OpenID provider: where its endpoints are, its keys, and tokens for a code."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any, TypeGuard
from urllib.error import HTTPError, URLError
from urllib.parse import quote_plus, urlencode
from urllib.request import Request

from srm_spark.api.oidc.errors import ProviderSilent, TokenRefused
from srm_spark.api.outgoing import opener
from srm_spark.config.oidc import is_safe_url
from srm_spark.config.settings import OidcSettings

_ANSWER_SECONDS = 5.0
_LARGEST = 1024 * 1024
_FRESH_SECONDS = 3600.0
_PAUSE_SECONDS = 5.0
"""After a question without an answer: whoever comes next does not wait for it as well."""
_FORM = "application/x-www-form-urlencoded"


class Provider:
    """Safe to use from several threads; whoever asks waits for its answer, at most `_ANSWER_SECONDS`."""

    def __init__(self, settings: OidcSettings, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Asked for nothing before somebody logs in: the service starts whether it is there or not."""
        self._settings, self._monotonic = settings, monotonic
        self._lock = threading.Lock()
        self._found: tuple[float, Mapping[str, Any]] | None = None
        self._failed: tuple[float, str] | None = None

    def endpoint(self, name: str) -> str:
        """Its address by the name of the discovery document. Raises ProviderSilent."""
        address: object = self._discovered().get(name)
        if not _is_usable(address):
            raise ProviderSilent(f"{self._settings.issuer} names no usable {name}")
        return address

    def known(self, name: str) -> str | None:
        """The same without asking; None where that is not known, or it has none."""
        address = None if self._found is None else self._found[1].get(name)
        return address if _is_usable(address) else None

    def keys(self) -> Mapping[str, Any]:
        """Its key set as it is now. Raises ProviderSilent."""
        return _asked(Request(self.endpoint("jwks_uri")))  # noqa: S310 - checked by `endpoint`

    def exchange(self, code: str, verifier: str) -> str:
        """The ID token for a code. Raises TokenRefused where the provider does not take it, and ProviderSilent."""
        settings = self._settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": settings.redirect,
            "client_id": settings.client_id,
            "code_verifier": verifier,
        }
        headers = {"Content-Type": _FORM, "Accept": "application/json"}
        methods = self._discovered().get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if settings.client_secret and "client_secret_basic" in methods:
            login = f"{quote_plus(settings.client_id)}:{quote_plus(settings.client_secret)}"
            headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        elif settings.client_secret:
            form["client_secret"] = settings.client_secret
        answer = _asked(Request(self.endpoint("token_endpoint"), urlencode(form).encode(), headers))  # noqa: S310 - checked by `endpoint`
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise TokenRefused("the provider sent no ID token")
        return token

    def _discovered(self) -> Mapping[str, Any]:
        """The document of discovery; one that is old counts on while there is no newer one."""
        with self._lock:
            now = self._monotonic()
            if self._failed is not None and now - self._failed[0] < _PAUSE_SECONDS and self._found is None:
                raise ProviderSilent(self._failed[1])
            if self._found is None or now - self._found[0] > _FRESH_SECONDS:
                issuer = self._settings.issuer
                try:
                    document = _asked(Request(f"{issuer.rstrip('/')}/.well-known/openid-configuration"))  # noqa: S310 - the configuration allows http and https only
                    if document.get("issuer") != issuer:
                        raise ProviderSilent(f"what answers at {issuer} calls itself otherwise")
                except (ProviderSilent, TokenRefused) as error:
                    if self._found is None:
                        self._failed = self._monotonic(), str(error)
                        raise ProviderSilent(str(error)) from error
                    document = self._found[1]
                self._found = now, document
            return self._found[1]


def _is_usable(address: object) -> TypeGuard[str]:
    return isinstance(address, str) and is_safe_url(address.partition("?")[0])


def _asked(request: Request) -> Mapping[str, Any]:
    """The JSON object of an answer. Raises TokenRefused for a refusal (400 and above), and ProviderSilent."""
    where = f"{request.type}://{request.host}"
    try:
        with opener.open(request, timeout=_ANSWER_SECONDS) as answer:
            content = answer.read(_LARGEST + 1)
    except HTTPError as error:
        with error:
            if 400 <= error.code < 500:
                raise TokenRefused(f"{where} answers {error.code}") from error
            raise ProviderSilent(f"{where} answers {error.code}") from error
    except (URLError, HTTPException, OSError, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        text = str(reason) if isinstance(reason, OSError) else type(reason).__name__
        raise ProviderSilent(f"{where} does not answer: {text}") from error
    try:
        document = json.loads(content) if len(content) <= _LARGEST else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ProviderSilent(f"{where} answers something else")
    return document
