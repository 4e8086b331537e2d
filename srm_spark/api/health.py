"""For those who watch the service: whether it lives, whether it is ready, and what Prometheus keeps of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel

from srm_spark.api.asked import TheBoard
from srm_spark.api.oidc.logins import Oidc
from srm_spark.api.users import Users
from srm_spark.config.stores import StoreError, end_of_certificate
from srm_spark.core.flow_series import FlowNow, Health, health_code
from srm_spark.look.behind import history_behind
from srm_spark.look.board import Board

router = APIRouter(tags=["Health"])


class Alive(BaseModel):
    """Always the same."""

    status: str = "ok"


class Ready(BaseModel):
    """Whether everything that is served was read."""

    ready: bool
    why_not: list[str]


@router.get("/healthz")
def healthz() -> Alive:
    """The process answers."""
    return Alive()


@router.get("/readyz", response_model=Ready, responses={503: {"model": Ready}})
def readyz(request: Request) -> Response:
    """Whether every target was read, and answers; 503 with what is in the way."""
    board: Board = request.app.state.board  # the whole: who asks has no login
    why_not = [f"cluster {view.alias} is not read" for view in board.targets.values() if view.why_not is not None]
    document = Ready(ready=not why_not, why_not=why_not)
    return JSONResponse(document.model_dump(), 503 if why_not else 200)


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(board: TheBoard, request: Request) -> PlainTextResponse:
    """In the text format of Prometheus."""
    state = request.app.state
    lines = [*_lines(board), *_of_the_certificate(state.certificate), *_of_files(state.users, state.oidc)]
    return PlainTextResponse("".join(f"{line}\n" for line in lines), media_type="text/plain; version=0.0.4")


def _lines(board: Board) -> Iterator[str]:
    nows = [board.now(flow) for flow in board.flows]
    yield from _family("srm_flow_health", "0 healthy, 1 unknown, 2 starting, 3 interrupted, 4 failed.")
    yield from (_sample("srm_flow_health", _flow(now), health_code(now)) for now in nows)
    yield from _family("srm_flow_status", "1 for the status of the flow.")
    for now in nows:
        for health in Health:
            yield _sample("srm_flow_status", {**_flow(now), "status": health.value}, int(now.health is health))
    for name, text, values in (
        ("srm_flow_lag_records", "Records that the target does not have yet.", [now.lag_records for now in nows]),
        ("srm_flow_lag_seconds", "How long the oldest of them waits.", [now.lag_seconds for now in nows]),
        ("srm_topics", "Source topics that flow.", [now.topics for now in nows]),
        ("srm_partitions", "Their partitions.", [now.partitions for now in nows]),
    ):
        yield from _family(name, text)
        yield from (_sample(name, _flow(now), one) for now, one in zip(nows, values, strict=True) if one is not None)
    yield from _of_the_service(board)
    yield from _of_history(board)


def _of_the_service(board: Board) -> Iterator[str]:
    yield from _family("srm_service_target_up", "Whether the metrics of a target could be read.")
    for view in board.targets.values():
        yield _sample("srm_service_target_up", {"target": view.alias}, int(view.why_not is None))
    counted = repeated = size = 0
    for flow in board.flows:
        with board.series(flow) as series:
            counted, repeated, size = counted + series.counted, repeated + series.repeated, size + series.size
    for name, text, value in (
        ("srm_service_samples_total", "Samples that were counted.", counted),
        ("srm_service_repeated_samples_total", "Samples that came twice or too late.", repeated),
        ("srm_service_newer_records_total", "Records of a newer version.", board.unread.newer),
        ("srm_service_unreadable_records_total", "Records of metrics topics that are none.", board.unread.garbage),
    ):
        yield from _family(name, text, "counter")
        yield _sample(name, {}, value)
    yield from _family("srm_service_series_bytes", "Memory that the figures take.")
    yield _sample("srm_service_series_bytes", {}, size)


def _of_history(board: Board) -> Iterator[str]:
    """Nothing where none is kept."""
    if board.past is None:
        return
    behinds = [history_behind(board, flow) for flow in board.flows]
    yield from _family("srm_service_history_known", "Whether it is known how far the history of the flow is behind.")
    for one in behinds:
        yield _sample("srm_service_history_known", {"flow": str(one.flow)}, int(one.seconds is not None))
    text = "From its newest sample in history to the newest that the service has read; none where that is not known."
    yield from _family("srm_service_history_behind_seconds", text)
    for one in behinds:
        if one.seconds is not None:
            yield _sample("srm_service_history_behind_seconds", {"flow": str(one.flow)}, one.seconds)


def _of_the_certificate(path: Path | None) -> Iterator[str]:
    """Nothing where the service has none, or it cannot be read just now."""
    if path is None:
        return
    with suppress(OSError, StoreError):
        end = end_of_certificate(path.read_bytes())
        yield from _family("srm_service_certificate_end_timestamp_seconds", "When its certificate ends.")
        yield _sample("srm_service_certificate_end_timestamp_seconds", {}, end)


def _of_files(users: Users | None, oidc: Oidc | None) -> Iterator[str]:
    roles = None if oidc is None else oidc.roles
    for name, kept in (("srm_service_users_file_current", users), ("srm_service_oidc_roles_file_current", roles)):
        if kept is not None:
            yield from _family(name, "0 while the file is broken, and what it said before counts.")
            yield _sample(name, {}, int(kept.is_current))


def _flow(now: FlowNow) -> dict[str, str]:
    return {"flow": str(now.flow)}


def _family(name: str, text: str, kind: str = "gauge") -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _sample(name: str, labels: dict[str, str], value: float) -> str:
    written = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{written}}} {value}" if written else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
