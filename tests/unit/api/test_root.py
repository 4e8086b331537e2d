"""Below a root path, which a proxy has in front of the service: whatever leads a browser somewhere begins with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from srm_spark.api.app import make_app
from srm_spark.errors import SetupError
from tests.identity_provider import IdentityProvider, identity_provider
from tests.unit.api.acting import TABS, Site
from tests.unit.api.boards import three_flows
from tests.unit.api.forms_filled import Browser
from tests.unit.api.openid import CLIENT, SECRET, Place, sent_back

ROOT = "/srm"
LEADS = re.compile(r'\s(?:href|action|formaction|src|data-events|data-openapi)="([^"]*)"')
HTML = {"accept": "text/html"}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, root=ROOT)


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with identity_provider({CLIENT: SECRET}) as running:
        yield running


@pytest.fixture
def browser(site: Site) -> Browser:
    return Browser(site, "ada")


def check(markup: str, at_least: int = 3) -> set[str]:
    """All that it leads to: below the root path, and once only."""
    found = {one for one in LEADS.findall(markup) if one != "data:," and not one.startswith("#")}
    assert len(found) >= at_least
    for one in found:
        assert one == ROOT or one.startswith((f"{ROOT}/", f"{ROOT}?")), one
        assert not one.startswith(f"{ROOT}{ROOT}"), one
    return found


@pytest.mark.parametrize("in_front", [ROOT, ""], ids=["left there", "taken away"])
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/docs",
        "/docs/",
        "/you",
        "/flows/C/B",
        "/flows/C/B/",
        "/flows/A/B/nothing",
        *(f"/flows/A/B{one}" for one in TABS),
    ],
)
def test_everything_that_a_page_leads_to(browser: Browser, path: str, in_front: str) -> None:
    answer = browser.client.get(in_front + path, headers=browser.headers)
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.status_code == (404 if path.endswith("nothing") else 200)
    check(answer.text)


def test_files_of_pages_are_there(browser: Browser) -> None:
    led = check(browser.client.get(ROOT, headers=browser.headers).text) | check(
        browser.client.get("/docs", headers=browser.headers).text
    )
    files = [one for one in led if "/static/" in one or one.endswith("openapi.json")]
    assert len(files) >= 5
    for one in files:
        assert browser.client.get(one, headers=browser.headers).status_code == 200, one
    assert browser.client.get("/openapi.json", headers=browser.headers).json()["servers"] == [{"url": ROOT}]


def test_what_forms_lead_to(browser: Browser) -> None:
    plan = browser.send("moves/plan", kind="failover", groups="billing", wait="")
    check(plan)
    check(browser.send("pause", topic="t"))
    check(browser.send("pause", 403, token="wrong"), 2)
    (identity,) = re.findall(r'name="plan" value="([^"]*)"', plan)
    browser.client.follow_redirects = False
    (token,) = re.findall(r'name="token" value="([^"]*)"', plan)
    sent = {"plan": identity, "confirm": "A->B", "token": token}
    answer = browser.client.post(f"{ROOT}/flows/A/B/moves", data=sent, headers=browser.headers)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith(f"{ROOT}/flows/A/B/moves/")
    check(browser.client.get(answer.headers["location"], headers=browser.headers).text)


@pytest.mark.parametrize(("here", "prefix"), [("https://srm.example", "__Secure-"), ("http://localhost", "")])
def test_a_login_stays_below_it(provider: IdentityProvider, tmp_path: Path, here: str, prefix: str) -> None:
    place = Place(provider, tmp_path, here=here, root=ROOT)
    place.provider.person = {"sub": "p1", "preferred_username": "alice", "groups": ["ab-viewers"]}
    browser = place.browser()
    sent = browser.get(f"{ROOT}/flows/A/B?show=max")
    assert sent.headers["location"] == f"{ROOT}/login?next=%2Fflows%2FA%2FB%3Fshow%3Dmax"
    begun = browser.get(sent.headers["location"])
    done = browser.get(sent_back(begun.headers["location"]))
    assert done.headers["location"] == f"{ROOT}/flows/A/B?show=max"
    assert browser.get(done.headers["location"]).status_code == 200
    cookies = [one for answer in (begun, done) for one in answer.headers.get_list("set-cookie")]
    assert len(cookies) == 3
    for cookie in cookies:
        assert cookie.startswith(f"{prefix}srm-")
        assert f"; Path={ROOT};" in cookie


def test_a_path_that_only_begins_alike_is_another_one(site: Site) -> None:
    assert site.client.get(f"{ROOT}x/healthz", auth=("ada", "ada")).status_code == 404
    assert site.client.get(f"{ROOT}/healthz").status_code == 200
    assert site.client.get(f"{ROOT}{ROOT}/healthz", auth=("ada", "ada")).status_code == 404


def test_what_asks_for_a_login_does_so_below_it(site: Site) -> None:
    for path in ("/v3/flows", "/metrics", "/"):
        assert site.client.get(ROOT + path).status_code == 401
    changing = site.client.post(f"{ROOT}/v3/flows/A/B/pause", json={}, auth=("ada", "ada"))
    assert changing.status_code == 403, "the header X-Requested-With is missing"


@pytest.mark.parametrize("root", ["/flows", "/v3/srm", "/static"])
def test_one_that_begins_as_paths_of_the_service_is_refused(root: str) -> None:
    with pytest.raises(SetupError, match="root"):
        make_app(three_flows().board, root=root)


def test_two_services_of_one_process_do_not_meet(site: Site) -> None:
    with TestClient(make_app(three_flows().board), base_url="http://localhost") as other:
        site.client.get("/")
        assert 'href="/static/style.css"' in other.get("/", headers=HTML).text
