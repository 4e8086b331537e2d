"""/v3, live: streams of server-sent events of all flows, or of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request
from fastapi.responses import StreamingResponse

from srm_spark.api.asked import TheFlow, caller_of
from srm_spark.api.feed import MEDIA_TYPE, EventStream, Feed
from srm_spark.api.problems import RESPONSES, described

_STREAMED: Mapping[int | str, dict[str, Any]] = {
    200: {"description": "Events, until one side ends it", "content": {MEDIA_TYPE: {"schema": {"type": "string"}}}},
    **described((503, "There are too many streams: ask again and again instead")),
}
router = APIRouter(
    prefix="/v3",
    tags=["srm-spark V3, live"],
    responses={**RESPONSES, **_STREAMED},
    default_response_class=StreamingResponse,
)
LastId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", description="The last event that was seen: what came since is sent first."),
]


def feed_of(request: Request) -> Feed:
    """That of the application."""
    feed: Feed = request.app.state.feed
    return feed


TheFeed = Annotated[Feed, Depends(feed_of)]


@router.get("/events/stream")
async def all_flows(request: Request, feed: TheFeed, last_id: LastId = None) -> EventStream:
    """How all flows are, first, and then each one whenever something of it has changed."""
    return EventStream(feed, None, caller_of(request), last_id)


@router.get("/flows/{source}/{target}/events/stream")
async def one_flow(request: Request, feed: TheFeed, flow: TheFlow, last_id: LastId = None) -> EventStream:
    """The same of one flow."""
    return EventStream(feed, flow, caller_of(request), last_id)
