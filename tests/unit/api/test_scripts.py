"""What pages load: little, from here, as its authors have published it; and what htmx may do in a page."""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from srm_spark.api import pages
from srm_spark.api.app import make_app
from tests.unit.api.boards import three_flows

STATIC = pages.FOLDER / "static"
VENDOR = STATIC / "vendor"
MOST_BYTES = 150 * 1024
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
UPLOT = "https://github.com/leeoniya/uPlot"
"""In a comment."""


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(make_app(three_flows().board)) as client:
        yield client


def test_there_is_little_script() -> None:
    assert sum(path.stat().st_size for path in STATIC.rglob("*.js")) <= MOST_BYTES


def test_nothing_names_another_host() -> None:
    files = [path for path in (*STATIC.rglob("*"), *(pages.FOLDER / "templates").iterdir()) if path.is_file()]
    assert len(files) > 30
    for path in files:
        text = path.read_text().replace(UPLOT, "")
        assert not re.search(r"https?:|wss?:|[\"'(]//|@import|url\(", text), path


def test_libraries_are_as_they_were_published() -> None:
    rows = [[cell.strip() for cell in line.split("|")] for line in (VENDOR / "README.md").read_text().splitlines()]
    listed = {row[1]: row for row in rows if len(row) == 8 and len(row[6]) == 64}
    shipped = {path.name for path in VENDOR.iterdir() if path.suffix in (".js", ".css")}
    assert shipped == set(listed)
    for name, row in listed.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == row[6]
        assert row[3].encode() in (VENDOR / name).read_bytes() or name == "uPlot.min.css"
        assert (VENDOR / row[5].rpartition(" ")[2]).is_file()


def test_pages_may_run_no_script_of_their_own(client: TestClient) -> None:
    for path in ("/", "/flows/A/B"):
        answer = client.get(path)
        assert answer.headers["content-security-policy"] == POLICY
        (content,) = re.findall(r"<meta name=\"htmx-config\" content='([^']*)'", answer.text)
        settings = json.loads(html.unescape(content))
        for name in ("allowEval", "allowScriptTags", "includeIndicatorStyles", "historyEnabled"):
            assert settings[name] is False
        assert not re.search(r"<script(?![^>]*src=)|\s(hx-)?on[:\w]*=|\sstyle=|<style|js:", answer.text)


def test_a_live_part_asks_for_itself(client: TestClient) -> None:
    page = client.get("/flows/A/B").text
    (live,) = re.findall(r'<div id="live"[^>]*>', page)
    assert 'hx-trigger="every 10s, refresh"' in live
    assert 'data-events="/v3/flows/A/B/events/stream"' in live
    for text in re.findall(r"data-chart='([^']*)'", page):
        points = json.loads(html.unescape(text))
        assert len(points["at"]) == len(points["values"]) == len(points["texts"])
    assert len(re.findall(r'<div class="plot" id="plot-\d" hx-preserve="true" aria-hidden="true"></div>', page)) == 5
    assert "uPlot" not in client.get("/").text


def test_browsers_keep_scripts_and_ask_whether_they_are_others(client: TestClient) -> None:
    for path in ("/static/live.js", "/static/vendor/htmx.min.js", "/static/swagger/swagger-ui.css"):
        first = client.get(path)
        assert first.headers["cache-control"] == "private, no-cache"
        again = client.get(path, headers={"if-none-match": first.headers["etag"]})
        assert (again.status_code, again.headers["cache-control"]) == (304, "private, no-cache")


def test_the_licences_are_in_the_wheel() -> None:
    settings = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    (patterns,) = re.findall(r"^license-files = (.*)$", settings, re.M)
    assert "srm_spark/api/static/vendor/LICENSE.*" in json.loads(patterns)
