"""Programs send access tokens of a provider; whatever else is made to look like one lets nobody in."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from starlette.testclient import TestClient

from srm_spark.api.oidc.errors import ProviderSilent, TokenRefused
from srm_spark.api.oidc.groups import GroupRoles, groups_of, name_of, read_groups
from srm_spark.api.oidc.keys import Keys
from srm_spark.api.roles import Role
from srm_spark.api.watching import table_watch
from srm_spark.errors import ConfigError
from tests.identity_provider import IdentityProvider, encoded, identity_provider
from tests.unit.api.boards import AB, BA, Clock
from tests.unit.api.logins import JSON
from tests.unit.api.openid import CLIENT, SECRET, Place


@pytest.fixture(scope="module")
def running() -> Iterator[IdentityProvider]:
    with identity_provider({CLIENT: SECRET}) as provider:
        yield provider


@pytest.fixture
def provider(running: IdentityProvider) -> IdentityProvider:
    running.is_down = False
    return running


@pytest.fixture
def place(provider: IdentityProvider, tmp_path: Path) -> Place:
    return Place(provider, tmp_path)


def public_pem(provider: IdentityProvider) -> bytes:
    return provider.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def by_secret(text: str, secret: bytes) -> str:
    signature = hmac.new(secret, text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def claims_of(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


def test_a_token_that_is_right_has_the_roles_of_its_groups(place: Place) -> None:
    token = place.provider.signed(groups=["ab-operators"], sub="batch")
    client = TestClient(place.app, base_url=place.here, headers={"authorization": f"bearer {token}"})
    assert "A->B" in client.get("/replications").json()
    assert len(client.get("/replications").json()) == len(client.get("/v3/flows").json()["flows"]) == 1
    assert client.get("/v3/flows/B/A").status_code == 404
    answer = client.post("/v3/flows/A/B/moves/plan", json={"kind": "failover"}, headers=JSON)
    assert answer.json()["kind"] == "no-settings", "an operator plans"
    answer = client.post("/v3/flows/A/B/moves", json={"plan": "x", "confirm": "A->B"}, headers=JSON)
    assert (answer.status_code, answer.json()["kind"]) == (403, "role")
    assert place.audit[-1]["who"] == "oidc:batch"


def test_tokens_of_two_audiences_and_of_other_types_pass(place: Place) -> None:
    sign = place.provider.signed
    for token in (
        sign(groups=["all"], aud=["else", "kafka"]),
        sign({"typ": "at+jwt"}, groups=["all"]),
        sign({"typ": None}, groups=["all"]),
        sign({"kid": None}, groups=["all"]),
    ):
        assert place.status(token) == 200


def attacks(provider: IdentityProvider) -> dict[str, str]:
    """Tokens that would be admin's."""
    sign, admin = provider.signed, {"groups": ["admins"]}
    good = sign(**admin)
    head, body, signature = good.split(".")
    unsigned = encoded({"alg": "none", "typ": "JWT"})
    stranger = IdentityProvider(provider.url, {}, rsa.generate_private_key(65537, 2048))
    secret_head = encoded({"alg": "HS256", "typ": "JWT", "kid": provider.key_id})
    viewer = sign(groups=["all"])
    now = claims_of(good)["iat"]
    return {
        "signed by another key": stranger.signed(**admin),
        "signed by another key that it names": stranger.signed({"kid": "else"}, **admin),
        "signed by another key that it brings": stranger.signed({"jwk": dict(stranger.keys()["keys"][0])}, **admin),
        "signed by a key that it links": stranger.signed({"jku": "https://evil.example/keys"}, **admin),
        "claims of another token": ".".join((head, body, viewer.split(".")[2])),
        "other claims": ".".join((viewer.split(".")[0], encoded({**claims_of(viewer), **admin}), viewer.split(".")[2])),
        "no signature": f"{head}.{body}.",
        "no signature at all": f"{head}.{body}",
        "algorithm none": f"{unsigned}.{body}.",
        "algorithm none, signed": f"{unsigned}.{body}.{signature}",
        "algorithm NONE": f"{encoded({'alg': 'NoNe'})}.{body}.",
        "no algorithm": f"{encoded({'typ': 'JWT'})}.{body}.{signature}",
        "an algorithm that is a list": f"{encoded({'alg': ['RS256']})}.{body}.{signature}",
        "the public key as a secret": by_secret(f"{secret_head}.{body}", public_pem(provider)),
        "the public key as a secret, in one line": by_secret(f"{secret_head}.{body}", public_pem(provider).strip()),
        "an empty secret": by_secret(f"{secret_head}.{body}", b""),
        "expired": sign(**admin, exp=now - 31),
        "no end": sign(**admin, exp=None),
        "an end that is no number": sign(**admin, exp="never"),
        "an end that is a list": sign(**admin, exp=[now + 60]),
        "not valid yet": sign(**admin, nbf=now + 3600),
        "of the future": sign(**admin, iat=now + 3600),
        "another audience": sign(**admin, aud="else"),
        "no audience": sign(**admin, aud=None),
        "an audience that is an object": sign(**admin, aud={"kafka": True}),
        "a longer audience": sign(**admin, aud="kafka2"),
        "another issuer": sign(**admin, iss="https://else.example"),
        "an issuer with a slash more": sign(**admin, iss=provider.url + "/"),
        "no issuer": sign(**admin, iss=None),
        "issuers": sign(**admin, iss=[provider.url]),
        "nobody": sign(**admin, sub=None),
        "a number": sign(**admin, sub=1),
        "an ID token": sign(**admin, nonce="n"),
        "a token of logouts": sign({"typ": "logout+jwt"}, **admin),
        "a type that is a list": sign({"typ": ["JWT"]}, **admin),
        "a key id that is a list": sign({"kid": [provider.key_id]}, **admin),
        "an extension that must be understood": sign({"crit": ["x"], "x": 1}, **admin),
        "nothing": "",
        "garbage": "a.b.c",
        "deep garbage": base64.urlsafe_b64encode(b"[" * 9000).decode() + "..",
        "no text": "é.é.é",
    }


KINDS = sorted(attacks(IdentityProvider("", {}, rsa.generate_private_key(65537, 2048))))


@pytest.mark.parametrize("kind", KINDS)
def test_no_other_token_lets_anybody_in(place: Place, kind: str) -> None:
    token = attacks(place.provider)[kind]
    headers = {b"authorization": b"Bearer " + token.encode()}
    answer = TestClient(place.app, base_url=place.here).get("/v3/flows", headers=headers)
    assert (answer.status_code, answer.json()["kind"]) == (401, "no-login"), answer.text
    assert place.status(place.provider.signed(groups=["admins"])) == 200, "the one that they were made of"
    assert not token or token not in place.audit_path.read_text() + answer.text


def test_a_flood_of_wrong_tokens_is_no_flood_of_records(place: Place) -> None:
    for number in range(20):
        assert place.status(f"made.up.{number}") == 401
    assert len(place.audit) == 5
    place.clock.pass_by(301)
    assert place.status("made.up.again") == 401
    assert len(place.audit) == 6


def test_tokens_are_taken_only_where_they_are_to_be(provider: IdentityProvider, tmp_path: Path) -> None:
    place = Place(provider, tmp_path, settings={"audience": ""})
    assert place.status(provider.signed(groups=["admins"])) == 401
    assert place.status(provider.signed(groups=["admins"], aud="")) == 401


@pytest.mark.parametrize(
    "groups",
    [
        "admins",
        "admins all",
        {"admins": True},
        {"0": "admins"},
        ["ad", "mins"],
        [["admins"]],
        ["all", ["admins"]],
        ["admins", 1],
        ["admins", None],
        [{"name": "admins"}],
        True,
        1,
        None,
        ["*"],
        ["ADMINS"],
        ["admins "],
        "*",
    ],
    ids=str,
)
def test_a_claim_of_another_type_is_no_role(place: Place, groups: object) -> None:
    assert place.status(place.provider.signed(groups=groups)) == 403
    assert place.status(place.provider.signed(roles=["admins"], role="admin", admins=True)) == 403


def test_groups_may_lie_deeper_and_names_may_have_dots() -> None:
    deep = {"realm_access": {"roles": ["a", "b"]}, "https://x.example/groups": ["c"], "list": [1]}
    assert groups_of(deep, "realm_access.roles") == {"a", "b"}
    assert groups_of(deep, "https://x.example/groups") == {"c"}
    for none in ("realm_access", "realm_access.roles.x", "list.0", "x.y", "list"):
        assert groups_of(deep, none) == set()


def test_names_are_never_those_of_users_of_the_file() -> None:
    assert name_of({"sub": "s", "preferred_username": "alice"}, "preferred_username") == "oidc:alice"
    for other in (None, 5, "", " ", "a\nb", "x" * 201, ["alice"]):
        assert name_of({"sub": "s", "preferred_username": other}, "preferred_username") == "oidc:s"


def test_several_groups_give_the_most_of_each_flow(tmp_path: Path) -> None:
    path = tmp_path / "roles"
    path.write_text("# groups\nurn:x:ops:operator A->B=none\ndr:B->A=admin\nab:A->B=viewer\n*:none\n")
    roles = GroupRoles(read_groups(str(path)))
    assert roles.of([]).are_none
    assert roles.of(["unknown"]).are_none
    both = roles.of(["urn:x:ops", "dr"])
    assert (both.of(AB), both.of(BA), both.everywhere) == (Role.NONE, Role.ADMIN, Role.OPERATOR)
    assert roles.of(["urn:x:ops", "ab"]).of(AB) is Role.VIEWER
    assert roles.flows == {"A->B", "B->A"}
    watch = table_watch(str(path), read_groups, roles)
    path.write_text("dr:B->A=king\nab\nab:viewer\nab:viewer\n:viewer\nx:\n")
    watch.look()
    assert not roles.is_current
    assert roles.of(["dr"]).of(BA) is Role.ADMIN
    with pytest.raises(ConfigError) as error:
        read_groups(str(path))
    assert [one.location for one in error.value.problems] == [f"{path}:{number}" for number in (1, 2, 4, 5, 6)]
    path.write_text("dr:viewer\n")
    watch.look()
    assert roles.is_current
    assert roles.of(["dr"]).of(AB) is Role.VIEWER
    for text in ("", "# nobody\n"):
        path.write_text(text)
        with pytest.raises(ConfigError):
            read_groups(str(path))


def test_a_change_of_the_roles_counts_for_who_is_logged_in(place: Place) -> None:
    browser = place.logged_in(groups=["all"])
    assert browser.get("/").status_code == 200
    place.oidc.roles.replace({})
    assert browser.get("/").status_code == 403


def test_keys_change_and_the_old_ones_count_no_more(place: Place) -> None:
    old = place.provider.signed(groups=["all"])
    assert place.status(old) == 200
    place.provider.rotate()
    new = place.provider.signed(groups=["all"])
    assert place.status(new) == 401, "it has asked just now"
    place.clock.pass_by(11)
    assert place.status(new) == 200
    assert place.status(old) == 401


def test_a_key_that_was_taken_back_counts_for_minutes_only(place: Place) -> None:
    old = place.provider.signed(groups=["all"])
    assert place.status(old) == 200
    place.provider.rotate()
    place.clock.pass_by(301)
    assert place.status(old) == 401


def test_made_up_key_ids_ask_the_provider_seldom(place: Place) -> None:
    assert place.status(place.provider.signed(groups=["all"])) == 200
    before = place.provider.asked_for_keys
    for number in range(20):
        assert place.status(place.provider.signed({"kid": f"made up {number}"}, groups=["all"])) == 401
    assert place.provider.asked_for_keys == before


def test_a_provider_that_is_down_is_missed_after_an_hour_only(place: Place) -> None:
    token = place.provider.signed(groups=["all"])
    place.provider.is_down = True
    assert place.status(token) == 503
    place.provider.is_down = False
    place.clock.pass_by(11)
    assert place.status(token) == 200
    place.provider.is_down = True
    place.clock.pass_by(3500)
    assert place.status(token) == 200
    place.clock.pass_by(200)
    assert place.status(token) == 503
    assert place.status("garbage") == 401


def test_what_is_no_public_key_that_signs_counts_for_nothing(provider: IdentityProvider) -> None:
    (good,) = provider.keys()["keys"]
    weak = IdentityProvider(provider.url, {}, rsa.generate_private_key(65537, 1024))
    token = provider.signed()
    for keys in (
        [{**good, "use": "enc"}],
        [{**good, "alg": "RS512"}],
        [{**good, "alg": "HS256"}],
        [{**good, "alg": ["RS256"]}],
        [{"kty": "oct", "kid": provider.key_id, "k": "AAAA"}],
        [{**good, "n": "!"}],
        [{**good, "kid": "else"}],
        ["x", None, 5],
        {"0": good},
        None,
    ):
        with pytest.raises((TokenRefused, ProviderSilent)):
            Keys(lambda keys=keys: {"keys": keys}).claims(token, provider.url, "kafka")  # type: ignore[misc]
    with pytest.raises(TokenRefused):
        Keys(weak.keys).claims(weak.signed(), provider.url, "kafka")
    assert Keys(lambda: {"keys": ["x", {"kty": "oct", "k": "AA"}, good]}).claims(token, provider.url, "kafka")


def test_a_curve_or_a_hash_of_another_key_is_refused(provider: IdentityProvider) -> None:
    numbers = ec.generate_private_key(ec.SECP256R1()).public_key().public_numbers()
    x, y = (base64.urlsafe_b64encode(one.to_bytes(32, "big")).decode().rstrip("=") for one in (numbers.x, numbers.y))
    keys = Keys(lambda: {"keys": [{"kty": "EC", "crv": "P-256", "kid": provider.key_id, "x": x, "y": y}]})
    for header in ({}, {"alg": "ES256"}, {"alg": "ES512"}):
        with pytest.raises(TokenRefused):
            keys.claims(provider.signed(header), provider.url, "kafka")


def test_a_provider_that_does_not_answer_is_asked_seldom(provider: IdentityProvider) -> None:
    clock, asked = Clock(), []

    def fetch() -> dict[str, Any]:
        asked.append(clock.monotonic)
        raise ProviderSilent("down")

    keys = Keys(fetch, lambda: clock.monotonic)
    for seconds in (0, 5, 5):
        clock.pass_by(seconds)
        with pytest.raises(ProviderSilent):
            keys.claims(provider.signed(), provider.url, "kafka")
    assert asked == [1000.0, 1010.0]
