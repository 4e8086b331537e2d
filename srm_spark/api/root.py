"""The root path that a proxy has in front of ours: whatever leads a browser somewhere begins with it.

Routes know nothing of it. A proxy may take it away or leave it there, and who asks without a proxy may leave it out.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar

from starlette.types import ASGIApp, Receive, Scope, Send

from srm_spark.config.keys_sites import ADVERTISED_PATH_KEY
from srm_spark.errors import SetupError

_ROOT: ContextVar[str] = ContextVar("root", default="")


def root() -> str:
    """That of the application which answers; empty, or begins with a slash and does not end with one."""
    return _ROOT.get()


def rooted(path: str) -> str:
    """A path of ours as browsers reach it."""
    return _ROOT.get() + path


class Rooted:
    """ASGI middleware, in front of all others: takes the root path away, and remembers it for whoever answers.

    A path that ends with a slash is meant without it; a redirect would know no root path.
    """

    def __init__(self, app: ASGIApp, path: str) -> None:
        """`path` as `root` says."""
        self._app, self._path = app, path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on."""
        if scope["type"] == "http":
            _ROOT.set(self._path)
            path, raw = scope["path"], scope["raw_path"]
            if self._path and f"{path}/".startswith(f"{self._path}/"):
                path, raw = path[len(self._path) :], raw[len(self._path) :]
            if raw.endswith(b"/"):  # one that is part of a name is sent as %2F
                path, raw = path[:-1], raw[:-1]
            scope = {**scope, "path": path or "/", "raw_path": raw or b"/"}
        await self._app(scope, receive, send)


def check_root(path: str, own: Iterable[str]) -> None:
    """Raises SetupError where a root path begins as one of our `own` paths: nobody could tell which is meant."""
    if path and path.split("/")[1] in {one.split("/")[1] for one in own}:
        hint = "name it otherwise, as /srm, in the proxy, too"
        raise SetupError(f"{ADVERTISED_PATH_KEY} = {path} begins as paths of the service itself do", hint)
