"""Scripts and styles: a browser keeps them, and asks with their tags whether they are others."""

from __future__ import annotations

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope


class KeptFiles(StaticFiles):
    """The files of a folder."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """One of them, or that it is the one that the browser has."""
        answer = await super().get_response(path, scope)
        answer.headers["cache-control"] = "private, no-cache"
        return answer
