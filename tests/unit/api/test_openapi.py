"""Random requests against what the OpenAPI document promises: no answer but a described one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from srm_spark.api.app import make_app
from srm_spark.api.roles import Role
from tests.unit.api.acting import Site
from tests.unit.api.boards import three_flows
from tests.unit.api.logins import JSON

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
few = settings(
    max_examples=6,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
schema = schemathesis.openapi.from_asgi("/openapi.json", make_app(three_flows().board))
acting = schemathesis.openapi.from_asgi("/openapi.json", Site(Path(tempfile.mkdtemp()), anonymous=Role.ADMIN).app)


@schema.exclude(path_regex="/events/stream$").parametrize()  # they have no end; test_events.py has them
@few
def test_every_answer_is_as_described(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate(checks=CHECKS)


@acting.include(path_regex="^/v3/flows/{source}/{target}/").exclude(path_regex="/events/stream$").parametrize()
@few
def test_so_is_what_clusters_answer_and_what_changes_something(case: schemathesis.Case[Any]) -> None:
    case.path_parameters |= {"source": "A", "target": "B"}
    case.call_and_validate(checks=CHECKS[1:], headers=JSON)  # 503 is right where a flow has not run
