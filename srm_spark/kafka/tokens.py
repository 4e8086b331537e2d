"""Tokens of a function of the user's own, for SASL/OAUTHBEARER: Python's counterpart of a login callback handler.

The settings carry its name and its options as plain texts, so they travel to executors and helpers; where a client is
made the function is imported. It gives what `oauth_cb` of confluent-kafka gives: the token and when it ends, in seconds
of the epoch; a principal and SASL extensions may follow. librdkafka asks again before a token ends, in a thread of its
own.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from srm_spark.config.sasl import TOKEN_FUNCTION, TOKEN_OPTIONS
from srm_spark.core.plugins import load_function

log = logging.getLogger(__name__)


@dataclass
class Tokens:
    """One user's function with its options, as librdkafka calls it."""

    path: str
    options: Mapping[str, str] = field(repr=False)

    def __call__(self, _: str = "") -> tuple[Any, ...]:
        """A new token. Raises whatever the function raises, which is logged: librdkafka says only that none came."""
        try:
            token = load_function(TOKEN_FUNCTION, self.path)(dict(self.options))
            if not isinstance(token, tuple) or len(token) < 2 or not isinstance(token[0], str):
                raise TypeError(f"got {type(token).__name__}, expected (token, end in seconds of the epoch)")
        except Exception as error:
            log.warning("%s gave no token: %s: %s", self.path, type(error).__name__, self._without_secrets(error))
            raise
        return token

    def _without_secrets(self, error: Exception) -> str:
        text = str(error)
        for value in sorted(filter(None, self.options.values()), key=len, reverse=True):
            text = text.replace(value, "***")
        return text


def tokens_of(options: Mapping[str, object]) -> Tokens | None:
    """The function that rendered options name; None where the login is another one."""
    path = options.get(TOKEN_FUNCTION)
    return None if path is None else Tokens(str(path), json.loads(str(options[TOKEN_OPTIONS])))


def with_tokens(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as librdkafka takes them."""
    tokens = tokens_of(options)
    own = {name: value for name, value in options.items() if name not in (TOKEN_FUNCTION, TOKEN_OPTIONS)}
    return own if tokens is None else {**own, "oauth_cb": tokens}
