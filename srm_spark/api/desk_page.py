"""What all pages of one flow share that ask its clusters: how they are put together, and what comes of a form."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from srm_spark.api.control import Desk
from srm_spark.api.pages import TEMPLATES, acting_values, flow_path
from srm_spark.api.problems import ProblemDocument
from srm_spark.api.root import rooted

PAGE = 100
"""Rows."""
Offset = Annotated[int, Query(ge=0, le=10**9)]


def desk_router() -> APIRouter:
    """For pages below a flow's address."""
    return APIRouter(prefix="/flows/{source}/{target}", include_in_schema=False, default_response_class=HTMLResponse)


def desk_page(request: Request, desk: Desk, tab: str, template: str, **values: Any) -> str:
    """A page of a flow."""
    return TEMPLATES.get_template(template).render(
        title=f"{desk.flow} {tab}",
        flow=desk.flow,
        tab=tab,
        at=request.app.state.board.now_ms(),
        role=desk.role.word,
        page=PAGE,
        **acting_values(request, desk),
        **values,
    )


def result_page(request: Request, desk: Desk, heading: str, lines: list[str], back: str = "") -> str:
    """What came of a form, with a link to the page of it: `back` is its address below the flow's."""
    where = flow_path(desk.flow) + (f"/{back}" if back else "")
    tab = back.partition("/")[0] or "overview"
    return desk_page(request, desk, tab, "result.html", heading=heading, lines=lines, back=rooted(where))


def problem_page(document: ProblemDocument, path: str) -> str:
    """A problem for people; `path` is where it came up."""
    parts = path.split("/")
    back = "/".join(parts[:4]) if len(parts) > 4 else "/"
    return TEMPLATES.get_template("problem.html").render(title=document.title, problem=document, back=rooted(back))
