"""Each right of docs/security.md is needed: without it the flow says which operation on which resource is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from srm_spark.config import load_settings
from srm_spark.config.rights import Right, rights_of_flow, rights_of_heartbeats
from srm_spark.config.settings import ClusterSettings, HeartbeatSettings, control_topic
from srm_spark.core.lists import Act, Change, ListKind
from srm_spark.core.model import Flow
from srm_spark.core.policy import HEARTBEATS_TOPIC
from srm_spark.driver import Driver
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.status import FlowState
from srm_spark.flow.topics.heartbeat import BeatGroup, Heartbeats
from srm_spark.flow.topics.list_writer import ListWriter
from srm_spark.flow.topics.lists import ActLog
from srm_spark.kafka.clients import options
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.kafka.fencing import FencingToken, TokenNote, fence
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker.conftest import Start
from tests.broker.mirror import SOON, await_count, status_of, write_config
from tests.broker.secured import Acl, SecuredKafka, make_stores, scram_login, secured_kafka
from tests.group_io import commit
from tests.kafka_io import Kafka, Record, numbered

pytestmark = pytest.mark.slow

USERS = {f"u{number}": f"pass-{number}" for number in range(38)}
ALL = "u0"
"""Who lacks nothing."""
PARTS = 5
"""So many drivers run after each other: flows that fail all the time are work."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    stores = make_stores(tmp_path_factory.mktemp("stores"))
    with secured_kafka("rights", stores, users=USERS) as found:
        yield found


def _login(user: str) -> dict[str, str]:
    return scram_login(user, USERS[user])


def _prepare(kafka: Kafka, user: str, lacks: Right | None) -> None:
    """A source topic; where a right needs a situation, that situation."""
    changes = lacks is not None and lacks.operation == "ALTER_CONFIGS"
    kafka.create(f"{user}-t", 2, {"retention.ms": "-1"} if changes else {})
    kafka.write(f"{user}-t", numbered(10, 2))
    commit(kafka, f"{user}-g", {(f"{user}-t", 0): 3})
    remote = f"{user}a.{user}-t"
    if lacks is None:
        return
    if changes:
        kafka.create(remote, 2)
    elif (lacks.operation, lacks.kind) == ("ALTER", "TOPIC"):
        kafka.create(remote, 1)
    elif lacks.operation in ("READ", "WRITE") and "quarantine" in lacks.name:
        kafka.create(remote, 2, {"cleanup.policy": "compact"})
        kafka.write(f"{user}-t", [Record(None, b"no key")])
    elif lacks.operation == "READ" and (lacks.name == remote or "offset-syncs" in lacks.name):
        # Records that nobody recorded are compared before the flow goes on, and offset syncs say where to begin.
        kafka.create(remote, 2)
        kafka.write(remote, numbered(1, 2))
        syncs = f"mm2-offset-syncs.{user}b.internal"
        kafka.create(syncs)
        kafka.write(syncs, [Record(b"no", b"sync")])


def _is_hidden(right: Right, said: str) -> bool:
    """A topic or group that we may not even describe is not refused, it is not there."""
    return (
        f"does not show {right.kind.lower()} {right.name}: there is none, or {right.operation} on it is not allowed"
        in said
    )


def _goes_with(right: Right, lacks: Right | None) -> bool:
    """Both sides are one cluster here: what brings a right goes with it, and who lacks one must not grant it."""
    if lacks is not None and (lacks.operation, right.operation) == ("DESCRIBE_CONFIGS", "ALTER_CONFIGS"):
        return True
    if lacks is not None and right.kind == "CLUSTER":
        return right is lacks or (lacks.kind, lacks.operation) != ("CLUSTER", "ALTER")
    is_described = lacks is not None and (lacks.operation, lacks.kind) == ("DESCRIBE", "GROUP")
    return right is lacks or (lacks is not None and is_described and (right.kind, right.name) == ("GROUP", lacks.name))


def _said(driver: Driver, flow: str, caplog: pytest.LogCaptureFixture) -> str:
    status = status_of(driver, flow)
    logged = [record.getMessage() for record in caplog.records if flow in record.getMessage()]
    return "\n".join((status.reason or "", *status.held.values(), *logged))


@pytest.mark.parametrize("part", range(PARTS))
def test_without_a_right_the_flow_names_it(
    broker: SecuredKafka, start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture, part: int
) -> None:
    caplog.set_level("INFO")
    kafka, users = broker.kafka, list(USERS)[part::PARTS]
    clusters: dict[str, KafkaCluster] = {}
    keys = {"flow.retry.delay.ms": "5000", "admin.timeout.ms": "30000", "sync.group.offsets.enabled": "true"}
    keys |= {"refused.record.policy": "park", "sync.topic.configs.interval.seconds": "1"}
    keys["metrics.period"] = "-1"  # what samples need stops no flow, and is told by what writes them
    for user in users:
        for alias in (f"{user}a", f"{user}b"):
            clusters[alias] = broker.at("SCRAM")
            keys |= {f"{alias}.{name}": value for name, value in _login(user).items()}
        keys[f"{user}a->{user}b.topics"] = f"{user}-t"
        keys[f"{user}a->{user}b.groups"] = f"{user}-g"
    flows = {user: f"{user}a->{user}b" for user in users}
    path = write_config(tmp_path / "rights.properties", clusters, list(flows.values()), keys)
    settings = {str(flow.flow): flow for flow in load_settings([path]).flows}
    lacking: dict[str, Right] = {}
    for user in users:
        rights = rights_of_flow(settings[flows[user]])
        assert len(rights) == len(USERS) - 1, "one user per right, and one who has them all"
        if user != ALL:
            lacking[user] = rights[list(USERS).index(user) - 1]
        left = [Acl(r.operation, r.kind, r.name) for r in rights if not _goes_with(r, lacking.get(user))]
        broker.allow(user, left)
        if user != ALL and lacking[user].kind == "CLUSTER":
            broker.allow("ann", [Acl("READ", "TOPIC", f"{user}-t")])
        _prepare(kafka, user, lacking.get(user))
    driver = start(clusters, list(flows.values()), keys)
    silent = dict(lacking)

    def all_said() -> bool:
        for user, right in list(silent.items()):
            said = _said(driver, flows[user], caplog)
            if str(right).partition(" of ")[0] in said or _is_hidden(right, said):
                del silent[user]
        return not silent

    await_until(
        all_said,
        2 * SOON,
        lambda: "\n\n".join(f"{right}: {status_of(driver, flows[u])}" for u, right in silent.items()),
    )
    if ALL in users:
        await_count(kafka, f"{ALL}a.{ALL}-t", 10, SOON)
        await_until(
            lambda: status_of(driver, flows[ALL]).state is FlowState.RUNNING,
            SOON,
            lambda: str(status_of(driver, flows[ALL])),
        )


def test_without_a_right_heartbeats_name_it(broker: SecuredKafka) -> None:
    def beat(user: str, *operations: str) -> None:
        broker.allow(user, [Acl(operation, "TOPIC", HEARTBEATS_TOPIC) for operation in operations])
        settings = HeartbeatSettings(Flow(f"{user}a", f"{user}b"), True, 1.0, 1)
        target = ClusterSettings(f"{user}b", broker.at("SCRAM").bootstrap_servers, _login(user))
        Heartbeats(BeatGroup(target, (settings,))).beat()

    rights = rights_of_heartbeats(HeartbeatSettings(Flow("A", "B"), True, 1.0, 1))
    assert {(right.operation, right.name) for right in rights} == {(o, HEARTBEATS_TOPIC) for o in ("CREATE", "WRITE")}
    with pytest.raises(TargetUnavailable, match=f"allow CREATE on topic {HEARTBEATS_TOPIC}"):
        beat("u1", "WRITE")
    beat("u2", "CREATE", "WRITE")
    assert broker.kafka.given(HEARTBEATS_TOPIC) == 1
    with pytest.raises(TargetUnavailable, match=f"allow WRITE on topic {HEARTBEATS_TOPIC}"):
        beat("u3", "CREATE")


def test_without_the_right_to_its_transactional_ids_a_flow_names_it(broker: SecuredKafka) -> None:
    settings = ClusterSettings("b", broker.at("SCRAM").bootstrap_servers, _login("u4"))
    fencing = FencingToken("srm-x->y", "t", TokenNote("token", 1), options(settings, {}, "test"), 30.0)
    with pytest.raises(TargetUnavailable, match="allow WRITE on transactional id srm-x->y-"):
        fence(fencing, 1)
    broker.allow("u4", [Acl("WRITE", "TRANSACTIONAL_ID", "srm-x->y-*")])
    fence(fencing, 1)


@pytest.mark.parametrize("lacks", ["CREATE", "READ", "WRITE", None])
def test_who_steers_without_a_right_is_told(broker: SecuredKafka, lacks: str | None) -> None:
    user = f"u{10 + ['CREATE', 'READ', 'WRITE', None].index(lacks)}"
    source = f"steered-{lacks}"
    topic = control_topic(source)
    broker.allow(user, [Acl(right, "TOPIC", topic) for right in ("CREATE", "READ", "WRITE") if right != lacks])
    settings = ClusterSettings("b", broker.at("SCRAM").bootstrap_servers, _login(user))
    act = Act(ListKind.TOPICS, Change(("t",)), 1, "ann@host")
    with closing(ListWriter(ClusterClient(settings, TargetUnavailable, timeout=15.0), source)) as lists:
        if lacks is None:
            assert lists.write(act).of(ListKind.TOPICS).allow == ("t",)
            return
        with pytest.raises(TargetUnavailable, match=f"allow {lacks}"):
            lists.write(act)


def test_a_flow_that_may_not_read_its_lists_names_the_right(broker: SecuredKafka) -> None:
    topic = control_topic("hidden")
    broker.kafka.create(topic)
    broker.allow("u15", [Acl("CREATE", "TOPIC", topic)])
    settings = ClusterSettings("b", broker.at("SCRAM").bootstrap_servers, _login("u15"))
    with pytest.raises(TargetUnavailable, match=f"it does not show; allow READ on topic {topic}"):
        ActLog(ClusterClient(settings, TargetUnavailable, timeout=15.0), topic, "test").require()
