"""Puts the application together."""

from __future__ import annotations

from pathlib import Path

import fastapi_offline
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute

from srm_spark.api import (
    change_pages,
    desk_page,
    flow_pages,
    health,
    pages,
    problems,
    quarantine_pages,
    smm,
    v1,
    v3,
    v3_acts,
    v3_changes,
    v3_events,
    v3_history,
    v3_looks,
    v3_moves,
    v3_offsets,
    v3_quarantine,
)
from srm_spark.api.applying import Runs
from srm_spark.api.audit import Audit
from srm_spark.api.control import Control
from srm_spark.api.feed import Feed
from srm_spark.api.fresh import NotModified, Tags, not_modified
from srm_spark.api.gateway import Gateway
from srm_spark.api.guard import Guard
from srm_spark.api.kept_files import KeptFiles
from srm_spark.api.moves import Moves
from srm_spark.api.oidc import login
from srm_spark.api.oidc.logins import Oidc
from srm_spark.api.plans import Plans
from srm_spark.api.roles import Role
from srm_spark.api.root import Rooted, check_root
from srm_spark.api.tokens import Tokens
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
    oidc: Oidc | None = None,
    anonymous: Role = Role.VIEWER,
    only_local: bool = False,
    control: Control | None = None,
    certificate: Path | None = None,
    gateway: Gateway | None = None,
    root: str = "",
) -> FastAPI:
    """The application over a board, which others fill. Neither `users` nor `oidc`: everybody may ask; see `Guard`.

    Without `control` it knows no clusters: what would ask them is refused. `certificate` is the file of its own, of
    which it says when it ends. Without `gateway` no other site is asked. `root` is what a proxy has in
    front of all paths, see `Rooted`. Raises SetupError where that cannot be.
    """
    control = control or Control(Audit())
    servers = [{"url": root}] if root else None
    app = FastAPI(
        title="srm-service", version="3", docs_url=None, redoc_url=None, servers=servers, redirect_slashes=False
    )
    app.state.board, app.state.control, app.state.certificate = board, control, certificate
    app.state.gateway = gateway
    app.state.users, app.state.oidc = users, oidc
    app.state.moves, app.state.tokens = Moves(control), Tokens()
    app.state.tags, app.state.feed = Tags(), Feed(board)
    app.state.shift_plans = Plans[v3_offsets.ShiftPlan]()
    app.state.runs = Runs()
    app.state.drop_plans = Plans[v3_quarantine.DropPlan]()
    problems.install(app, desk_page.problem_page)
    app.exception_handler(NotModified)(not_modified)
    modules = [health, v3, v3_looks, v3_acts, v3_moves, v3_changes, v3_offsets, v3_quarantine, v3_events, v3_history]
    modules += [v1, smm, pages, flow_pages, change_pages, quarantine_pages, login]
    for router in (*(module.router for module in modules), v1.v2):
        app.include_router(router)
        check_root(root, [route.path for route in router.routes if isinstance(route, APIRoute)])
    check_root(root, ["/static", "/docs", "/openapi.json"])
    app.mount("/static/swagger", KeptFiles(directory=_SWAGGER))
    app.mount("/static", KeptFiles(directory=pages.FOLDER / "static"))

    @app.get("/docs", include_in_schema=False)
    def _docs() -> HTMLResponse:
        docs = pages.TEMPLATES.get_template("docs.html").render()
        return HTMLResponse(docs, headers={"content-security-policy": _DOCS_POLICY})

    app.add_middleware(Guard, audit=control.audit, users=users, oidc=oidc, anonymous=anonymous, only_local=only_local)
    app.add_middleware(Rooted, path=root)
    return app
