"""Apply on real clusters that refuse, die, answer nobody and are interrupted: what is left, the next run finishes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from srm_spark.change.apply import Ready, apply_plan, check
from srm_spark.change.document import PlanFile, load_plan
from srm_spark.change.look import make_plan
from srm_spark.change.report import RunReport, load_report, report_path
from srm_spark.change.steps import Stage
from srm_spark.cli.control import main
from srm_spark.config import load_settings
from srm_spark.core.acls import Acl
from srm_spark.core.cluster import TopicSpec
from srm_spark.core.quotas import Quota, entity_of
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.clusters import connect
from srm_spark.flow.topics.remote_topics import record_made
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.testing import KafkaCluster, LocalKafka
from tests.awaiting import await_until
from tests.broker.authorized import AUTHORIZED, client
from tests.broker.control import srm_control
from tests.broker.mirror import SOON, write_config
from tests.broker.secured import Acl as Right
from tests.broker.secured import SecuredKafka, make_stores, scram_login, secured_kafka
from tests.door import Behind, behind_door

pytestmark = pytest.mark.slow

DAY = {"retention.ms": "86400000"}
UNRECORDED = list(Stage)[: list(Stage).index(Stage.ACLS)]
"""Stages that ask for a change first: behind them something is recorded in front of it."""
KEYS = {"topics": "orders, users, audit", "sync.topic.acls.enabled": "true", "sync.user.quotas.enabled": "true"}


@dataclass(frozen=True)
class Scene:
    """Two clusters with something to do in each stage, and a plan of it."""

    clusters: Mapping[str, KafkaCluster]
    folder: Path
    there: ClusterClient
    """The target, whatever stands between it and the commands."""

    @property
    def source(self) -> str:
        """Its alias."""
        return next(iter(self.clusters))

    @property
    def flow(self) -> str:
        """As it is written."""
        return "->".join(self.clusters)

    @property
    def path(self) -> Path:
        """Of the plan."""
        return self.folder / "plan.json"

    def config(self, keys: Mapping[str, str] = {}) -> Path:
        """The configuration."""
        whole = {**KEYS, "admin.timeout.ms": "5000", **keys}
        return write_config(self.folder / "srm.properties", self.clusters, [self.flow], whole)

    def ask(self, *words: str) -> Result:
        """What srm-control says."""
        return CliRunner().invoke(main, ["--config", str(self.folder / "srm.properties"), *words])

    def apply(self) -> Result:
        """The plan, or what is left of it."""
        return self.ask("apply", str(self.path), "--yes")

    @cached_property
    def plan(self) -> PlanFile:
        """As it was written."""
        return load_plan(self.path)

    @property
    def report(self) -> RunReport:
        """What lies beside it: whole, or this fails."""
        found = load_report(report_path(self.path), self.plan.id)
        assert found is not None
        return found

    def run(self, tell: Callable[[str], None]) -> RunReport:
        """The plan, as the command applies it."""
        clusters = connect(load_settings([self.folder / "srm.properties"]).flows[0])
        fresh = make_plan(clusters, prune=False, rights=lambda _: ())
        before = load_report(report_path(self.path), self.plan.id)
        report = check(self.plan, before, {self.flow: fresh})
        return apply_plan([Ready(clusters, fresh)], report, report_path(self.path), tell)

    def record(self) -> None:
        """That the remote topic was made here: the first thing that the run after an interrupted one does."""
        clusters = connect(load_settings([self.folder / "srm.properties"]).flows[0])
        record_made(clusters, {f"{self.source}.orders": "orders"})

    def assert_applied(self) -> None:
        """All of it is done, each step once, and nothing is left."""
        done = self.report.of(self.flow).done
        assert (len(done), set(done), self.report.refused) == (len(set(done)), set(self.plan.flows[0].steps), 0)
        assert self.there.topics()[f"{self.source}.orders"] == 3
        assert self.there.topics()[f"{self.source}.users"] == 2
        names = [f"{self.source}.{name}" for name in ("orders", "audit")]
        values = [configs["retention.ms"].value for configs in self.there.configs(names).values()]
        assert values == [DAY["retention.ms"]] * 2
        again = self.apply()
        assert (again.exit_code, "nothing was changed" in again.output) == (0, True), again.output


def quota_of(user: str) -> Quota:
    """How much this one may read in a second."""
    return Quota(entity_of({"user": user}), "consumer_byte_rate")


def prepare(here: ClusterClient, there: ClusterClient, alias: str) -> Acl:
    """Topics of the source, and what of them the target has; the ACL that is to come."""
    if "orders" not in here.topics():
        made = [TopicSpec("orders", 3, 1, DAY), TopicSpec("users", 2, 1, {}), TopicSpec("audit", 1, 1, DAY)]
        assert not any(here.create(made).values())
    assert not any(
        there.create([TopicSpec(f"{alias}.users", 1, 1, {}), TopicSpec(f"{alias}.audit", 1, 1, {})]).values()
    )
    reads = Acl("orders", "LITERAL", "User:ann", "*", "READ", "ALLOW")
    assert not any(here.add_acls([reads]).values())
    assert not any(here.alter_quotas({quota_of(alias): 1000.0}).values())
    await_until(lambda: {"orders", "users", "audit"} <= here.topics().keys(), SOON, "topics of the source")
    await_until(lambda: f"{alias}.audit" in there.topics(), SOON, "topics of the target")
    return reads._replace(name=f"{alias}.orders")


@pytest.fixture(scope="module")
def source() -> Iterator[LocalKafka]:
    with LocalKafka("faulty-source", overrides=AUTHORIZED) as broker:
        yield broker


@pytest.fixture(scope="module")
def target() -> Iterator[Behind]:
    with behind_door("faulty-target", AUTHORIZED) as behind:
        yield behind


@pytest.fixture
def scene(source: LocalKafka, target: Behind, unique: str, tmp_path: Path) -> Scene:
    assert isinstance(target.cluster, LocalKafka)
    found = Scene({f"a{unique}": source, f"b{unique}": target}, tmp_path, client(target.cluster))
    prepare(client(source), found.there, found.source)
    found.config()
    planned = found.ask("plan", "--out", str(found.path))
    assert planned.exit_code == 0, planned.output
    assert {step.stage for step in found.plan.flows[0].steps} == set(Stage)
    return found


def test_a_target_that_dies_or_whose_answer_is_lost_at_each_stage_is_an_error_and_the_next_run_goes_on(
    scene: Scene, target: Behind
) -> None:
    alias, there = scene.source, scene.there
    seen: Mapping[Stage, Callable[[], bool]] = {
        Stage.INTERNAL: lambda: f"mm2-offsets.{alias}.internal" in there.topics(),
        Stage.TOPICS: lambda: f"{alias}.orders" in there.topics(),
        Stage.PARTITIONS: lambda: there.topics()[f"{alias}.users"] == 2,
        Stage.CONFIGS: lambda: there.configs([f"{alias}.audit"])[f"{alias}.audit"]["retention.ms"].is_own,
        Stage.ACLS: lambda: any(acl.name == f"{alias}.orders" for acl in there.acls(["TOPIC"]) or ()),
        Stage.QUOTAS: lambda: quota_of(alias) in there.quotas(),
    }

    def lose_the_answer(stage: Stage) -> None:
        await_until(seen[stage], SOON, f"{stage.value} on the target")
        target.door.refuse()

    def kill_it_before(_: Stage) -> None:
        target.broker.kill()

    def kill_it_amid(stage: Stage) -> None:
        await_until(seen[stage], SOON, f"{stage.value} on the target")
        target.broker.kill()

    faults = {
        Stage.INTERNAL: kill_it_amid,
        Stage.TOPICS: lose_the_answer,
        Stage.PARTITIONS: lose_the_answer,
        Stage.CONFIGS: kill_it_before,
        Stage.ACLS: kill_it_before,
        Stage.QUOTAS: kill_it_before,
    }
    running: list[threading.Thread] = []

    def tell(said: str) -> None:
        stage = next((one for one in faults if f": {one.value}: " in said), None)
        if stage is None or running:  # one fault in each run
            return
        fault = faults.pop(stage)
        if fault is not kill_it_before:
            target.door.mute()
        running.append(threading.Thread(target=fault, args=(stage,), daemon=True))
        running[-1].start()
        if fault is kill_it_before:
            running[-1].join()

    stopped: list[Stage | None] = []
    for _ in range(len(Stage)):
        running.clear()
        with pytest.raises(TargetUnavailable, match=f"cluster {list(scene.clusters)[1]}"):
            scene.run(tell)
        running[-1].join(SOON)
        stopped.append(scene.report.of(scene.flow).stage)
        target.door.open()
        if not target.broker.running:
            target.broker.start()
    assert (faults, stopped[1:]) == ({}, list(Stage)[1:])
    finished = scene.apply()
    assert finished.exit_code == 0, finished.output
    scene.assert_applied()


def test_ctrl_c_at_each_stage_ends_soon_and_the_next_run_goes_on(scene: Scene, target: Behind) -> None:
    config = ("--config", str(scene.folder / "srm.properties"))
    again = scene.folder / "another.json"
    target.broker.pause()
    with srm_control("plan", *config, "--out", str(again)) as running:
        running.await_connected(target.door.ports[0])
        assert (running.interrupt(), again.exists()) == (130, False), running.said
    target.broker.resume()
    assert "interrupted" in running.said
    with srm_control("apply", str(scene.path), *config) as running:
        running.await_said("Do this?")
        assert running.interrupt() == 130, running.said
    assert not report_path(scene.path).exists()
    met: dict[str, None] = {}
    for _ in range(3 * len(UNRECORDED)):  # on a busy machine Ctrl-C may come before the step is asked for
        if len(met) == len(UNRECORDED):
            break
        with srm_control("apply", str(scene.path), *config) as running:
            running.await_said("Do this?")
            target.door.mute()  # what is asked for first is done, and nobody hears of it
            running.answer("y")
            running.await_said(" step")
            code = running.interrupt()
        target.door.open()
        met |= dict.fromkeys(stage.value for stage in Stage if f": {stage.value}: " in running.said)
        assert code == 130, running.said
        assert "interrupted" in running.said or "the same command goes on" in running.said, running.said
        assert not scene.report.of(scene.flow).is_ended
        scene.record()
    assert list(met) == [stage.value for stage in UNRECORDED]
    finished = scene.apply()
    assert finished.exit_code == 0, finished.output
    scene.assert_applied()


USERS = {"mover": "mover-Secret-1"}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka("half", make_stores(tmp_path_factory.mktemp("stores")), users=USERS) as found:
        yield found


def test_what_an_authorizer_refuses_is_named_with_the_missing_right_and_done_once_it_is_granted(
    secured: SecuredKafka, tmp_path: Path
) -> None:
    kafka = secured.kafka
    topics = [f"t{number}" for number in range(6)]
    for topic in topics:
        kafka.create(topic, 2, DAY)
    for topic, partitions in (("t2", 1), ("t3", 1), ("t4", 2), ("t5", 2)):
        kafka.create(f"A.{topic}", partitions, DAY if partitions == 1 else {})
    granted = {
        **{f"A.{topic}": ("CREATE", "DESCRIBE", "DESCRIBE_CONFIGS") for topic in topics[:1]},
        **{f"A.{topic}": ("DESCRIBE", "DESCRIBE_CONFIGS") for topic in topics[1:]},
    }
    rights = [Right(one, "TOPIC", name) for name, operations in granted.items() for one in operations]
    rights += [Right(one, "TOPIC", "t*") for one in ("READ", "DESCRIBE_CONFIGS")]
    rights += [Right(one, "TOPIC", "mm2-*") for one in ("CREATE", "READ", "WRITE", "DESCRIBE_CONFIGS")]
    rights += [Right(one, "TOPIC", "srm-*") for one in ("CREATE", "READ", "WRITE", "DESCRIBE_CONFIGS")]
    rights += [Right(one, "TOPIC", "A.checkpoints.internal") for one in ("CREATE", "WRITE")]
    rights += [Right("DESCRIBE", "CLUSTER", "kafka-cluster")]
    rights += [Right("ALTER", "TOPIC", "A.t2"), Right("ALTER_CONFIGS", "TOPIC", "A.t4")]
    secured.allow("mover", rights)
    secured.allow("ann", [Right("READ", "TOPIC", "t0")])
    keys = {f"{alias}.{key}": value for alias in "AB" for key, value in scram_login("mover", USERS["mover"]).items()}
    clusters = {"A": secured.at("SCRAM"), "B": secured.at("SCRAM")}
    scene = Scene(clusters, tmp_path, client(secured.at("SCRAM")))
    scene.config({**keys, "topics": "t.*", "groups": "none", "admin.timeout.ms": "30000"})

    planned = scene.ask("plan", "--out", str(scene.path))
    assert planned.exit_code == 0, planned.output
    refused = scene.apply()
    assert refused.exit_code == 3, refused.output
    missing = {
        "A.t1": "CREATE on topic A.t1",
        "A.t3": "ALTER on topic A.t3",
        "A.t5": "ALTER_CONFIGS on topic A.t5",
        "A.t0": "ALTER on cluster kafka-cluster",
    }
    document = json.loads(report_path(scene.path).read_text())["flows"]["A->B"]
    told = {str(one["step"].get("topic") or one["step"]["acl"]["name"]): one["why"] for one in document["refused"]}
    assert told.keys() == missing.keys()
    for name, right in missing.items():
        assert f"allow {right} to the principal of these credentials" in told[name]
        assert told[name] in refused.output
    assert (kafka.topics()["A.t0"], kafka.topics()["A.t2"], kafka.configs("A.t4")) == (2, 2, DAY)
    assert ("A.t1" in kafka.topics(), kafka.topics()["A.t3"], kafka.configs("A.t5")) == (False, 1, {})

    secured.allow("mover", [Right("CREATE", "TOPIC", "A.t1"), Right("ALTER", "TOPIC", "A.t3")])
    secured.allow("mover", [Right("ALTER_CONFIGS", "TOPIC", "A.t5"), Right("ALTER", "CLUSTER", "kafka-cluster")])
    finished = scene.apply()
    assert finished.exit_code == 0, finished.output
    assert (kafka.topics()["A.t1"], kafka.topics()["A.t3"], kafka.configs("A.t5")) == (2, 2, DAY)
    again = scene.apply()
    assert (again.exit_code, "nothing was changed" in again.output) == (0, True), again.output
