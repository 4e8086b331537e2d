"""Puts the application together."""

from __future__ import annotations

from pathlib import Path

import fastapi_offline
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

from srm_spark.api import health, pages, problems, smm, v1, v3
from srm_spark.api.audit import Audit
from srm_spark.api.guard import Guard
from srm_spark.api.roles import Role
from srm_spark.api.users import Users
from srm_spark.look.board import Board

_SWAGGER = Path(fastapi_offline.__file__).parent / "static"
"""Swagger UI's own files: nothing comes from another host."""
_DOCS_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Swagger UI sets styles of elements by itself."""


def make_app(
    board: Board,
    users: Users | None = None,
    *,
    anonymous: Role = Role.VIEWER,
    only_local: bool = False,
    audit: Audit | None = None,
) -> FastAPI:
    """The application over a board, which others fill. `users` None: everybody may ask; see `Guard`."""
    audit = audit or Audit()
    app = FastAPI(title="srm-service", version="3", docs_url=None, redoc_url=None)
    app.state.board = board
    problems.install(app)
    for router in (health.router, v3.router, v1.v2, v1.router, smm.router, pages.router):
        app.include_router(router)
    app.mount("/static/swagger", StaticFiles(directory=_SWAGGER))
    app.mount("/static", StaticFiles(directory=pages.FOLDER / "static"))
    docs = pages.environment().get_template("docs.html").render()

    @app.get("/docs", include_in_schema=False)
    def _docs() -> HTMLResponse:
        return HTMLResponse(docs, headers={"content-security-policy": _DOCS_POLICY})

    app.add_middleware(Guard, audit=audit, users=users, anonymous=anonymous, only_local=only_local)
    return app
