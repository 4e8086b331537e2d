"""A service of a test in a browser: served on a free port, opened in a page that reaches nothing else."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from axe_playwright_python.sync_playwright import Axe
from fastapi import FastAPI
from playwright.sync_api import Browser, Page, ViewportSize

from srm_spark.api.app import make_app
from srm_spark.api.server import Server
from tests.awaiting import await_until
from tests.unit.api.boards import Filled

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NO_CHROMIUM = "no chromium on this machine: apt-get install chromium"
WIDE, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=800)


@contextmanager
def served(filled: Filled) -> Iterator[str]:
    """The address of a service over a board."""
    with serving(make_app(filled.board, only_local=True)) as address:
        yield address


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """The address of an application."""
    config = uvicorn.Config(app, port=0, log_config=None, lifespan="off")
    server = Server(config, app.state.feed) if hasattr(app.state, "feed") else uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    await_until(lambda: server.started, 20, "the server listens")
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)


@contextmanager
def page_of(browser: Browser, address: str, **settings: object) -> Iterator[Page]:
    """A page of its own that can reach the service only; what goes wrong in it fails the test."""
    context = browser.new_context(viewport=settings.pop("viewport", WIDE), **settings)  # type: ignore[arg-type]
    wrong: list[str] = []
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    try:
        page.goto(address)
        yield page
    finally:
        context.close()
    host = address.split("/")[2]
    assert [url for url in asked if url.split("/")[2:3] != [host] and not url.startswith("data:")] == []
    assert wrong == []


def assert_accessible(page: Page) -> None:
    """No rule of axe is broken."""
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def assert_fits(page: Page) -> None:
    """Nothing sticks out at the right."""
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
