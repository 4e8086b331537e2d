"""/v3/history: how far the history that the service keeps is behind what it has read."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from srm_spark.api.asked import TheBoard, iso_if_known
from srm_spark.api.problems import RESPONSES, RequestProblem
from srm_spark.core.moments import time_of
from srm_spark.look.behind import HistoryBehind, history_behind

router = APIRouter(prefix="/v3", tags=["srm-spark V3"], responses=RESPONSES)


class BehindDocument(BaseModel):
    """The history of a flow. `behind_seconds` is null where it is not known, with when it was last, and why."""

    flow: str
    newest_in_history: str | None
    newest_read: str | None
    behind_seconds: float | None
    unknown_since: str | None
    kind: str | None
    why: str | None

    @classmethod
    def of(cls, one: HistoryBehind) -> BehindDocument:
        """That of a flow."""
        return cls(
            flow=str(one.flow),
            newest_in_history=iso_if_known(one.newest_kept),
            newest_read=iso_if_known(one.newest_read),
            behind_seconds=one.seconds,
            unknown_since=iso_if_known(one.unknown_since),
            kind=None if one.why is None else one.why.value,
            why=None if one.why is None else one.why.sentence,
        )


class HistoriesDocument(BaseModel):
    """The history of all flows."""

    at: str
    flows: list[BehindDocument]


@router.get("/history")
def histories(board: TheBoard) -> HistoriesDocument:
    """How far the history of each flow is behind its newest sample; 404 where the service keeps none."""
    if board.past is None:
        raise RequestProblem(404, "no history", "this service keeps no history: set service.history.path")
    return HistoriesDocument(
        at=time_of(board.now_ms()), flows=[BehindDocument.of(history_behind(board, flow)) for flow in board.flows]
    )
