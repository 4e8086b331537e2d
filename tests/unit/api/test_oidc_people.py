"""People log in by a provider with their browsers, and nobody else does by their hands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.testclient import TestClient

from srm_spark.api.app import make_app
from srm_spark.api.oidc.logins import challenge_of, own_path
from tests.identity_provider import IdentityProvider, identity_provider
from tests.unit.api.boards import three_flows
from tests.unit.api.logins import login, users_of
from tests.unit.api.openid import CLIENT, SECRET, Place, changed, sent_back


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with identity_provider({CLIENT: SECRET}) as running:
        yield running


@pytest.fixture
def place(provider: IdentityProvider, tmp_path: Path) -> Place:
    return Place(provider, tmp_path)


def test_a_browser_comes_back_to_where_it_wanted_to(place: Place) -> None:
    place.provider.person = {"sub": "p1", "preferred_username": "alice", "groups": ["ab-viewers", "else"]}
    browser = place.browser()
    first = browser.get("/flows/A/B?range=LAST_ONE_DAY")
    assert first.status_code == 303
    away = browser.get(first.headers["location"])
    asked = {name: values[0] for name, values in parse_qs(urlsplit(away.headers["location"]).query).items()}
    assert (asked["kind"], asked["response_type"], asked["scope"]) == ("person", "code", "openid profile")
    back = browser.get(sent_back(away.headers["location"]))
    assert (back.status_code, back.headers["location"]) == (303, "/flows/A/B?range=LAST_ONE_DAY")
    assert browser.get("/flows/A/B").status_code == 200
    assert browser.get("/flows/B/A").status_code == 404
    assert "oidc:alice" in browser.get("/you").text
    assert [(one["who"], one["does"], one["result"]) for one in place.audit] == [("oidc:alice", "login", "done")]
    assert asked["nonce"] not in place.audit_path.read_text()


@pytest.mark.parametrize(("here", "is_secure"), [("http://localhost:6670", False), ("https://srm.example:6671", True)])
def test_cookies_are_for_this_service_alone(
    provider: IdentityProvider, tmp_path: Path, here: str, is_secure: bool
) -> None:
    place = Place(provider, tmp_path, here=here)
    place.provider.person = {"sub": "p1", "groups": ["all"]}
    browser = place.browser()
    sent = [browser.get("/login"), browser.get(place.begin(browser))]
    cookies = [one for answer in sent for one in answer.headers.get_list("set-cookie")]
    assert len(cookies) == 3
    for cookie in cookies:
        assert "; HttpOnly" in cookie
        assert re.search("; SameSite=lax", cookie, re.IGNORECASE)
        assert "; Path=/;" in cookie
        assert "domain" not in cookie.lower()
        assert ("; Secure" in cookie) == cookie.startswith("__Host-") == is_secure
        assert "Max-Age=" in cookie


def test_a_session_ends_after_its_time_however_it_is_used(place: Place) -> None:
    browser = place.logged_in(groups=["all"])
    for _ in range(59):
        place.clock.pass_by(60)
        assert browser.get("/").status_code == 200
    place.clock.pass_by(61)
    assert browser.get("/").headers["location"] == "/login?next=%2F"


def test_who_logs_out_is_nobody_wherever_his_cookie_lies(place: Place) -> None:
    browser = place.logged_in(groups=["all"])
    other = place.browser(browser.cookies)
    assert other.get("/").status_code == 200
    assert browser.post("/logout").status_code == 403, "without a token of a form"
    assert browser.get("/").status_code == 200
    (token,) = re.findall(r'name="token" value="([^"]+)"', browser.get("/you").text)
    answer = browser.post("/logout", data={"token": token})
    assert answer.status_code == 200
    assert f'href="{place.provider.url}/logout"' in answer.text
    assert (browser.get("/").status_code, other.get("/").status_code) == (303, 303)
    assert place.audit[-1]["does"] == "logout"


def test_another_login_in_the_same_browser_ends_the_session_before(place: Place) -> None:
    browser = place.logged_in(groups=["all"])
    other = place.browser(browser.cookies)
    assert browser.get(place.begin(browser)).status_code == 303
    assert (browser.get("/").status_code, other.get("/").status_code) == (200, 303)


def test_answers_that_belong_to_another_login_are_refused(place: Place) -> None:
    place.provider.person = {"sub": "p1", "groups": ["admins"]}
    browser, attacker = place.browser(), place.browser()
    stolen = place.begin(attacker)
    for address in (stolen, changed(place.begin(browser), state="x"), changed(place.begin(browser), state="")):
        assert browser.get(address).status_code == 401
    assert place.browser().get(place.begin(browser)).status_code == 401, "of a browser that has begun none"
    crossed = changed(place.begin(browser), code=parse_qs(urlsplit(place.begin(attacker)).query)["code"][0])
    assert browser.get(crossed).status_code == 401, "a code that was asked for with another challenge"
    assert browser.get("/").status_code == 303
    assert {one["result"] for one in place.audit} == {"refused"}


def test_an_answer_counts_once(place: Place) -> None:
    place.provider.person = {"sub": "p1", "groups": ["all"]}
    browser = place.browser()
    address = place.begin(browser)
    before = dict(browser.cookies)
    asked = dict(place.provider.codes)
    assert browser.get(address).status_code == 303
    place.provider.codes |= asked  # a provider that forgets what was used
    again = place.browser(before)
    assert again.get(address).status_code == 401
    assert again.get("/").status_code == 303


def test_a_login_takes_its_time_and_no_more(place: Place) -> None:
    place.provider.person = {"sub": "p1", "groups": ["all"]}
    for seconds, status in ((599, 303), (601, 401)):
        browser = place.browser()
        address = place.begin(browser)
        place.clock.pass_by(seconds)
        assert browser.get(address).status_code == status


@pytest.mark.parametrize(
    "person",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"nonce": 5},
        {"aud": "kafka"},
        {"aud": ["x", "y"]},
        {"iss": "https://else.example"},
        {"exp": 1},
        {"azp": "another"},
        {"sub": None},
        {"sub": 7},
        {"sub": ""},
        {"sub": "a\ud800"},
    ],
    ids=str,
)
def test_an_id_token_that_is_not_ours_lets_nobody_in(place: Place, person: dict[str, object]) -> None:
    place.provider.person = {"sub": "p1", "groups": ["admins"], **person}
    browser = place.browser()
    assert browser.get(place.begin(browser)).status_code == 401
    assert browser.get("/").status_code == 303


def test_an_answer_of_another_provider_or_a_refusal_lets_nobody_in(place: Place) -> None:
    browser = place.browser()
    for other in ({"iss": "https://else.example"}, {"error": "access_denied"}, {"code": ""}, {"code": "made-up"}):
        assert browser.get(changed(place.begin(browser), **other)).status_code == 401
    text = browser.get(changed(place.begin(browser), error="call 555 <b>now</b>")).text
    assert "555" not in text
    place.provider.person = {"sub": "p1", "groups": ["all"]}
    assert browser.get(changed(place.begin(browser), iss=place.provider.url)).status_code == 303


@pytest.mark.parametrize(
    "path",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "\t//evil.example",
        "/a\r\nset-cookie: x=y",
        "/ä",
        "javascript:alert(1)",
        "evil.example",
        "/login?next=/",
        "/logout",
        "",
        "/" + "a" * 3000,
    ],
)
def test_a_login_leads_to_this_service_only(place: Place, path: str) -> None:
    assert own_path(path) == "/"
    place.provider.person = {"sub": "p1", "groups": ["all"]}
    browser = place.browser()
    answer = browser.get(place.begin(browser, path))
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_paths_of_this_service_are_kept() -> None:
    for path in ("/", "/flows/A/B?range=LAST_ONE_DAY&search=a%2Fb", "/flows/A/B/moves/x"):
        assert own_path(path) == path


def test_too_many_failed_logins_of_one_address(place: Place) -> None:
    browser = place.browser()
    statuses = [browser.get(f"/login/done?state={number}&code=x").status_code for number in range(31)]
    assert statuses == [401] * 30 + [429]
    place.clock.pass_by(301)
    place.provider.person = {"sub": "p1", "groups": ["all"]}
    assert browser.get(place.begin(browser)).status_code == 303


def test_who_has_no_role_sees_nothing_and_may_log_out(place: Place) -> None:
    browser = place.logged_in(groups=["somebody"], preferred_username="eve")
    for path in ("/", "/metrics", "/v3/flows", "/docs", "/openapi.json", "/static/live.js"):
        answer = browser.get(path)
        assert (answer.status_code, answer.json()["kind"]) == (403, "no-role")
    (token,) = re.findall(r'name="token" value="([^"]+)"', browser.get("/you").text)
    assert browser.post("/logout", data={"token": token}).status_code == 200


def test_a_provider_that_is_down_is_told_and_users_of_the_file_go_on(place: Place, tmp_path: Path) -> None:
    place = Place(place.provider, tmp_path, users_of(alice=""))
    place.provider.is_down = True
    browser = place.browser()
    answer = browser.get("/login")
    assert answer.status_code == 503
    assert SECRET not in answer.text
    assert browser.get("/v3/flows", headers=login("alice:alice")).status_code == 200
    place.provider.is_down = False
    place.clock.pass_by(6)
    assert browser.get("/login").status_code == 303


def test_programs_and_scripts_are_not_sent_to_a_page(place: Place) -> None:
    browser = place.browser()
    for headers in ({"accept": "*/*"}, {"accept": "application/json"}, {"sec-fetch-mode": "cors"}):
        answer = browser.get("/v3/flows", headers=headers)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="srm-service"')
    assert browser.post("/flows/A/B/pause").status_code == 401


def test_a_page_of_another_site_changes_nothing_by_a_session(place: Place) -> None:
    browser = place.logged_in(groups=["admins"])
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}):
        assert browser.post("/v3/flows/A/B/pause", headers=headers).json()["kind"] == "another-site"
        assert browser.post("/logout", headers=headers).json()["kind"] == "another-site"
    assert browser.get("/").status_code == 200


def test_the_challenge_is_that_of_the_standard() -> None:
    assert challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_without_a_provider_there_are_no_such_pages() -> None:
    client = TestClient(make_app(three_flows().board))
    assert [client.get(path).status_code for path in ("/login", "/login/done", "/you")] == [404, 404, 200]
