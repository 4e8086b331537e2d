"""What a file says of logins by an OpenID provider."""

from __future__ import annotations

import pytest

from srm_spark.config.secrets import is_secret
from srm_spark.config.settings import OidcSettings
from tests.unit.config.conftest import Loader, problems

ISSUER = "https://id.example/realms/kafka"
PEOPLE = {
    "issuer": ISSUER,
    "client.id": "srm",
    "client.secret": "s3cret",
    "redirect": "https://srm.example:6671/login/done",
    "roles.file": "roles",
}


def text(**changed: str | None) -> str:
    values = {**PEOPLE, **{name.replace("_", "."): value for name, value in changed.items()}}
    return "\n".join(f"service.oidc.{name} = {value}" for name, value in values.items() if value is not None)


def test_without_a_word_there_is_none(loaded: Loader) -> None:
    assert loaded("").settings.service.oidc is None


def test_people_and_programs(loaded: Loader) -> None:
    found = loaded(text()).settings.service.oidc
    redirect = PEOPLE["redirect"]
    assert found == OidcSettings(ISSUER, "roles", client_id="srm", client_secret="s3cret", redirect=redirect)
    assert "s3cret" not in repr(found)
    assert is_secret("service.oidc.client.secret")
    more = "\nservice.oidc.audience = kafka\nservice.oidc.session.minutes = 15\nservice.oidc.scopes = openid,roles"
    claims = "\nservice.oidc.roles.claim = realm_access.roles\nservice.oidc.name.claim = email"
    every = loaded(text() + more + claims).settings.service.oidc
    assert every is not None
    assert (every.audience, every.session_minutes, every.scopes) == ("kafka", 15, ("openid", "roles"))
    assert (every.roles_claim, every.name_claim) == ("realm_access.roles", "email")
    programs = f"service.oidc.issuer = {ISSUER}\nservice.oidc.audience = kafka\nservice.oidc.roles.file = roles"
    assert problems(loaded(programs)) == []
    local = text(issuer="http://127.0.0.1:8080", redirect="http://localhost:6670/login/done")
    assert problems(loaded(local)) == []


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"issuer": "http://id.example"}, "service.oidc.issuer"),
        ({"issuer": "https://id.example/?x=y"}, "service.oidc.issuer"),
        ({"issuer": "https://user@id.example"}, "service.oidc.issuer"),
        ({"issuer": "https://id.example:port"}, "service.oidc.issuer"),
        ({"issuer": "ftp://id.example"}, "service.oidc.issuer"),
        ({"issuer": "id.example"}, "service.oidc.issuer"),
        ({"redirect": "http://srm.example/login/done"}, "service.oidc.redirect"),
        ({"redirect": "https://srm.example/done"}, "service.oidc.redirect"),
        ({"redirect": None}, "service.oidc.client.id"),
        ({"client_id": None, "client_secret": None, "audience": "kafka"}, "service.oidc.redirect"),
        ({"client_id": None, "redirect": None, "audience": "kafka"}, "service.oidc.client.secret"),
        ({"client_id": None, "client_secret": None, "redirect": None}, "service.oidc.issuer"),
        ({"roles_file": None}, "service.oidc.roles.file"),
        ({"scopes": "profile"}, "service.oidc.scopes"),
        ({"roles_claim": ""}, "service.oidc.roles.claim"),
        ({"name_claim": ""}, "service.oidc.name.claim"),
        ({"session_minutes": "0"}, "service.oidc.session.minutes"),
    ],
    ids=str,
)
def test_what_cannot_be_is_told(loaded: Loader, changed: dict[str, str | None], key: str) -> None:
    (problem,) = problems(loaded(text(**changed)))
    assert f"|{key}|" in problem
    assert "s3cret" not in problem


def test_without_an_issuer_nothing_of_it_has_an_effect(loaded: Loader) -> None:
    found = problems(loaded(text(issuer=None)))
    assert len(found) == 4
    assert all("has no effect without service.oidc.issuer" in one for one in found)
