"""Who is a viewer of one flow finds no trace of the others, wherever he looks."""

from __future__ import annotations

import re

import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from srm_spark.api import (
    change_pages,
    flow_pages,
    health,
    pages,
    quarantine_pages,
    smm,
    v1,
    v3,
    v3_acts,
    v3_looks,
    v3_moves,
    v3_offsets,
)
from srm_spark.api.app import make_app
from tests.unit.api.boards import three_flows
from tests.unit.api.logins import login, users_of

APP = make_app(three_flows().board, users_of(vera="A->B=viewer", victor="", nora="none"))
HIDDEN = {
    "source": "C",
    "target": "B",
    "cluster": "C",
    "topic": "C.orders",
    "upstream_topic": "orders",
    "downstream_topic": "C.orders",
    "metric": "byte-rate",
    "kind": "topics",
    "subject": "topic",
    "kafka_cluster_id": "x",
    "move": "x",
    "run": "x",
}
"""What a path would say of C->B."""
MODULES = (health, v3, v3_looks, v3_acts, v3_moves, v3_offsets, v1, smm)
PAGES = (pages, flow_pages, quarantine_pages, change_pages)
ROUTERS = [module.router for module in (*MODULES, *PAGES)]
ROUTES = [route for router in (*ROUTERS, v1.v2) for route in router.routes]
GETS = sorted({route.path for route in ROUTES if isinstance(route, APIRoute) and "GET" in (route.methods or ())})
OPEN = {"/healthz", "/readyz"}
TRACES = re.compile(r"C-(>|&gt;)B|B-(>|&gt;)A|C\.orders|B\.orders|flows/C/B|flows/B/A")


def asked(path: str, user: str = "vera") -> tuple[int, str]:
    client = TestClient(APP, base_url="http://localhost")
    answer = client.get(path, headers=login(f"{user}:{user}"))
    return answer.status_code, answer.text


def test_the_paths_are_those_of_the_whole_service() -> None:
    assert {"/", "/metrics", "/replications", "/v3/flows", "/flows/{source}/{target}"} <= set(GETS)


@pytest.mark.parametrize("path", [path for path in GETS if "{" not in path and path not in OPEN])
def test_lists_have_only_flows_that_may_be_seen(path: str) -> None:
    status, text = asked(path)
    assert status == 200
    assert not TRACES.search(text)


@pytest.mark.parametrize("path", [path for path in GETS if "{" in path])
def test_what_may_not_be_seen_is_not_there(path: str) -> None:
    hidden = path.format_map(HIDDEN)
    status, text = asked(hidden)
    nowhere = asked(hidden.replace("/C", "/D"))
    assert (status, text) == (404, nowhere[1].replace("D->B", "C->B").replace("D.o", "C.o").replace(" D;", " C;"))
    assert asked(hidden, "victor")[0] != 404 or path.endswith(("{kafka_cluster_id}", "{move}", "{run}"))


def test_who_may_see_all_sees_all_and_who_may_see_none_sees_none() -> None:
    assert all(name in asked("/metrics", "victor")[1] for name in ("A->B", "B->A", "C->B"))
    assert "A->B" in asked("/metrics")[1]
    assert asked("/v3/flows", "nora")[0] == 403
    for path in ("/v3/flows", "/metrics", "/"):
        assert "A->B" not in asked(path, "nora")[1].replace("A-&gt;B", "A->B")
