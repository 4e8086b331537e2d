"""Tokens by client credentials: one for all connections, until most of its life is over."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from srm_spark.errors import ProtocolUnavailable
from srm_spark.kafka.client_credentials import ClientCredentials, Credentials, credentials_of
from srm_spark.kafka.login import login_options

OPTIONS = {
    "bootstrap.servers": "a:1",
    "security.protocol": "sasl_plaintext",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "svc",
    "sasl.oauthbearer.client.secret": "hush",
    "sasl.oauthbearer.scope": "all",
    "sasl.oauthbearer.token.endpoint.url": "https://somewhere/token",
}
SVC = Credentials("https://somewhere/token", "svc", "hush", "all")


class Provider:
    """Gives one token after the other, each with what is `said` of its life; time is what the test says."""

    def __init__(self, **said: Any) -> None:
        self.said = said
        self.now = 1000.0
        self.asked = 0

    def __call__(self, _: Credentials) -> Mapping[str, Any]:
        self.asked += 1
        return {"access_token": f"token {self.asked}", **self.said}

    def tokens(self) -> ClientCredentials:
        return ClientCredentials(SVC, self, lambda: self.now)


def test_the_same_token_until_most_of_its_life_is_over() -> None:
    provider = Provider(expires_in=600)
    tokens = provider.tokens()
    assert [tokens.token(), tokens.token()] == ["token 1", "token 1"]
    provider.now += 479
    assert tokens.token() == "token 1"
    provider.now += 2
    assert [tokens.token(), tokens.token()] == ["token 2", "token 2"]


def test_where_the_provider_does_not_say_how_long_the_token_does() -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": 1100}).encode()).decode().rstrip("=")
    provider = Provider(access_token=f"e30.{claims}.c2ln")
    tokens = provider.tokens()
    assert tokens.token() == tokens.token()
    assert provider.asked == 1
    provider.now += 81
    tokens.token()
    assert provider.asked == 2


@pytest.mark.parametrize("said", [{}, {"expires_in": None}, {"expires_in": "soon"}])
def test_a_token_of_which_nobody_says_how_long_is_used_once(said: dict[str, Any]) -> None:
    tokens = Provider(**said).tokens()
    assert [tokens.token(), tokens.token()] == ["token 1", "token 2"]


def test_the_request_is_that_of_rfc_6749() -> None:
    request = SVC.request()
    assert request.get_method() == "POST"
    assert request.data == b"grant_type=client_credentials&scope=all"
    assert request.get_header("Authorization") == "Basic " + base64.b64encode(b"svc:hush").decode()
    assert Credentials(SVC.url, "svc", "hush").request().data == b"grant_type=client_credentials"
    assert "hush" not in repr(SVC)


def test_connections_of_our_own_log_in_with_it() -> None:
    assert credentials_of(OPTIONS) == SVC
    first, second = (login_options(OPTIONS, "role", "cluster A") for _ in range(2))
    assert isinstance(first["sasl_oauth_token_provider"], ClientCredentials)
    assert first["sasl_oauth_token_provider"] is second["sasl_oauth_token_provider"]
    assert first["sasl_mechanism"] == "OAUTHBEARER"


@pytest.mark.parametrize(
    "other",
    [{"sasl.oauthbearer.grant.type": "urn:ietf:params:oauth:grant-type:jwt-bearer"}, {"sasl.mechanism": "GSSAPI"}],
)
def test_another_login_is_not_taken_for_it(other: dict[str, str]) -> None:
    with pytest.raises(ProtocolUnavailable):
        login_options({**OPTIONS, **other}, "role", "cluster A")
