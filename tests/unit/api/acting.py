"""A service that acts on clusters in memory: A->B is a flow with a topic, a group, and a record in quarantine."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from srm_spark.api.app import make_app
from srm_spark.api.audit import Audit
from srm_spark.api.control import Control, Means
from srm_spark.api.roles import Role
from srm_spark.api.users import Users
from srm_spark.config.load import load
from srm_spark.core.cluster import Committed
from srm_spark.flow.recovery.settling import TargetEnds
from srm_spark.flow.refused.replay import Means as ReplayMeans
from srm_spark.kafka.fencing import FencingToken, TokenNote
from tests.memory_cluster import MemoryProducer
from tests.unit.api.boards import Clock, three_flows
from tests.unit.api.logins import JSON, login, users_of
from tests.unit.memory_flow import HERE
from tests.unit.memory_run import World

FILE = """clusters = A, B
A.bootstrap.servers = nowhere:1
B.bootstrap.servers = nowhere:2
A->B.enabled = true
A->B.topics = .*
B->A.enabled = true
replication.factor = 1
offset.storage.replication.factor = 1
control.topic.replication.factor = 1
emit.heartbeats.enabled = false
dialect = mm2
"""
SYNCED = {
    "sync.group.offsets.enabled": "true",
    "emit.checkpoints.enabled": "true",
    "refused.record.policy": "park",
    "control.topic.replication.factor": "1",
}
USERS = {"victor": "", "olga": "operator", "ada": "admin", "abe": "viewer A->B=admin"}
"""A viewer, an operator, an admin, and one who is admin of one flow."""
TABS = (
    "",
    "/lists",
    "/lists/groups",
    "/groups",
    "/losses",
    "/quarantine",
    "/explain?name=t",
    "/events",
    "/moves",
    "/offsets",
    "/changes",
)
"""Pages of a flow, below its address."""


@cache
def _users() -> Users:
    return users_of(**USERS)


class Site:
    """The service, whom it knows, and the clusters behind it."""

    def __init__(self, folder: Path, *, anonymous: Role | None = None, root: str = "", more: str = "") -> None:
        """Everybody is `anonymous` where that is said; else there are `USERS`. `more`: lines of the configuration."""
        self.world = World(SYNCED)
        self.world.flow.write(b"a", b"b", b"c")
        self.world.copied()
        self.world.flow.source.group_calls.committed["billing"] = {HERE: Committed(2)}
        path = folder / "srm.properties"
        path.write_text(FILE + more)
        self.audit_path = folder / "audit.log"
        self.clock = Clock()
        means = Means(self.world.flow.reach, self._replay, lambda *_: set(), lambda _: (), patience=0.0)
        self.control = Control(Audit(str(self.audit_path)), load([path]), folder, means)
        users = _users() if anonymous is None else None
        self.filled = three_flows()
        self.app = make_app(
            self.filled.board, users, anonymous=anonymous or Role.VIEWER, control=self.control, root=root
        )
        self.client = TestClient(self.app, base_url="http://localhost", raise_server_exceptions=False)

    @property
    def _replay(self) -> ReplayMeans:
        flow = self.world.flow

        def ends(_: object, remotes: Any, **__: object) -> TargetEnds:
            return flow.target.end_offsets(remotes.values())

        return ReplayMeans(
            flow.reach,
            lambda _, lease, slots: FencingToken(lease.group, "leases", TokenNote("now", slots), {}, 1.0),
            ends,
            lambda *_: MemoryProducer(flow.target),
        )

    def get(self, path: str, user: str = "victor", status: int = 200) -> Any:
        """Ask below /v3/flows."""
        answer = self.client.get(f"/v3/flows/{path}", headers=login(f"{user}:{user}"))
        assert answer.status_code == status, answer.text
        return answer.json()

    def post(self, path: str, user: str = "ada", status: int = 200, **body: object) -> Any:
        """Change something below /v3/flows."""
        answer = self.client.post(f"/v3/flows/{path}", json=body, headers={**login(f"{user}:{user}"), **JSON})
        assert answer.status_code == status, answer.text
        return answer.json()

    @property
    def audit(self) -> list[dict[str, Any]]:
        """All records."""
        return [json.loads(line) for line in self.audit_path.read_text().splitlines()]

    def last(self, *names: str) -> tuple[Any, ...]:
        """Of the newest record."""
        return tuple(self.audit[-1][name] for name in names)


def put_aside(site: Site, *values: bytes) -> list[int]:
    """Records are written and put into quarantine; their offsets."""
    flow = site.world.flow
    flow.start()
    offsets = list(range(3, 3 + len(values)))
    flow.write(*values)
    for offset in offsets:
        flow.park(offset)
    flow.record(*flow.copy(aside=offsets))
    return offsets
