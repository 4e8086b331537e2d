"""`srm-driver doctor` against clusters that answer, do not answer, refuse, and allow less than is needed; and
`srm-service doctor` against such in which drivers report, or somebody else does."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic

from srm_spark.cli.driver import run
from srm_spark.cli.service import run as service
from srm_spark.config.settings import ClusterSettings
from srm_spark.core.acls import Acl
from srm_spark.core.driver_status import FlowState
from srm_spark.core.metrics import FlowSample, encode, metrics_topic
from srm_spark.core.model import Flow
from srm_spark.doctor import Finding, Health, examine
from srm_spark.errors import TargetUnavailable
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.testing import KafkaCluster, LocalKafka
from srm_spark.testing.ports import free_ports
from tests.broker.mirror import write_config
from tests.broker.told_service import report
from tests.kafka_io import Kafka, Record

SECONDS = 4.0
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
ONE_COPY = {
    "replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
}

Keys = Mapping[str, str]
Examine = Callable[[Keys], dict[str, Finding]]


def write(path: Path, keys: Keys) -> Path:
    path.write_text("".join(f"{key} = {value}\n" for key, value in keys.items()))
    return path


def keys(source: str, target: str, **more: str) -> dict[str, str]:
    flow = {"A.bootstrap.servers": source, "B.bootstrap.servers": target, "A->B.enabled": "true", "A->B.topics": ".*"}
    return {"clusters": "A, B", **flow, **ONE_COPY, **more}


@pytest.fixture
def findings(tmp_path: Path) -> Examine:
    """Examine a configuration; findings by the name of their check."""

    def run_it(written: Keys) -> dict[str, Finding]:
        path = write(tmp_path / "srm.properties", written)
        return {finding.check: finding for finding in examine([path], seconds=SECONDS)}

    return run_it


@pytest.fixture(scope="module")
def guarded() -> Iterator[LocalKafka]:
    """A broker with logins and an authorizer: `admin` may do everything, `guest` nothing."""
    users = 'username="admin" password="secret" user_admin="secret" user_guest="guest"'
    overrides = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN} {users};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
    }
    with LocalKafka("guarded", overrides=overrides) as broker:
        yield broker


def login(alias: str, user: str, password: str) -> dict[str, str]:
    return {
        f"{alias}.security.protocol": "SASL_PLAINTEXT",
        f"{alias}.sasl.mechanism": "PLAIN",
        f"{alias}.sasl.jaas.config": f'{PLAIN} username="{user}" password="{password}";',
    }


def create(bootstrap_servers: str, topic: str, **extra: Any) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, **extra})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()


def test_clusters_that_answer_are_fine(
    findings: Examine, primary: KafkaCluster, secondary: KafkaCluster, unique: str
) -> None:
    create(primary.bootstrap_servers, f"orders-{unique}")
    found = findings(keys(primary.bootstrap_servers, secondary.bootstrap_servers))
    assert not [finding for finding in found.values() if finding.health is Health.FAILED]
    assert found["cluster A"].found == f"{primary.bootstrap_servers}: 1 broker"
    assert found["A->B: read the topics on A"].health is Health.OK
    assert found["A->B: create topics on B"].health is Health.OK


def test_topics_that_do_not_exist_are_told(
    findings: Examine, primary: KafkaCluster, secondary: KafkaCluster, unique: str
) -> None:
    create(primary.bootstrap_servers, f"orders-{unique}")
    topics = {"A->B.topics": f"orders-{unique}, gone-{unique}, none-{unique}.*"}
    found = findings(keys(primary.bootstrap_servers, secondary.bootstrap_servers, **topics))["A->B: topics on A"]
    assert found.health is Health.WARNED
    assert f"matches gone-{unique}, none-{unique}.*:" in found.found
    assert found.remedy == "check A->B.topics and topics.exclude"


def test_more_copies_than_brokers_are_told(findings: Examine, primary: KafkaCluster, secondary: KafkaCluster) -> None:
    written = keys(primary.bootstrap_servers, secondary.bootstrap_servers) | {"replication.factor": "2"}
    found = findings(written)["cluster B"]
    assert found.health is Health.FAILED
    assert found.found.endswith("too few for replication.factor = 2")
    assert found.remedy == "add brokers, or -D replication.factor=1"


def test_an_internal_topic_that_forgets_is_told(
    findings: Examine, primary: KafkaCluster, secondary: KafkaCluster, unique: str
) -> None:
    topic = f"offsets-{unique}"
    Kafka(secondary).create(topic, 1, {"cleanup.policy": "delete"})
    found = findings(keys(primary.bootstrap_servers, secondary.bootstrap_servers, **{"B.offset.storage.topic": topic}))
    finding = found[f"A->B: topic {topic} on B"]
    assert finding.health is Health.FAILED
    assert "cleanup.policy=delete" in finding.found
    assert finding.remedy.endswith(f"cleanup.policy=compact --bootstrap-server {secondary.bootstrap_servers}")


@pytest.mark.parametrize(
    ("address", "told"),
    [("127.0.0.1:1", "nobody listens there"), ("nowhere.invalid:9092", "the host name cannot be resolved")],
)
def test_a_cluster_that_is_not_there_leaves_the_other_checks_alone(
    findings: Examine, primary: KafkaCluster, address: str, told: str
) -> None:
    found = findings(keys(primary.bootstrap_servers, address))
    assert found["cluster B"].health is Health.FAILED
    assert told in found["cluster B"].found
    assert "B.bootstrap.servers" in found["cluster B"].remedy
    assert found["cluster A"].health is Health.OK
    assert found["permissions A->B"].health is Health.UNKNOWN


def test_a_port_of_something_else_is_told(findings: Examine, primary: KafkaCluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = findings(keys(primary.bootstrap_servers, f"127.0.0.1:{silent.getsockname()[1]}"))["cluster B"]
    assert found.health is Health.FAILED
    assert "no answer in time" in found.found


def test_refused_credentials_are_not_called_unreachable(
    findings: Examine, primary: KafkaCluster, guarded: LocalKafka
) -> None:
    written = keys(primary.bootstrap_servers, guarded.bootstrap_servers) | login("B", "admin", "wrong")
    found = findings(written)["cluster B"]
    assert found.health is Health.FAILED
    assert "the cluster refuses the credentials" in found.found
    assert "wrong" not in found.found
    assert found.remedy == "correct B.sasl.jaas.config and B.sasl.mechanism"


def test_a_wrong_security_protocol_is_told(findings: Examine, primary: KafkaCluster, guarded: LocalKafka) -> None:
    found = findings(keys(primary.bootstrap_servers, guarded.bootstrap_servers))["cluster B"]
    assert "does not speak this protocol" in found.found
    assert "B.security.protocol" in found.remedy


def test_missing_permissions_are_told_with_the_command_that_grants_them(
    findings: Examine, guarded: LocalKafka, unique: str
) -> None:
    admin = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "admin"}
    create(guarded.bootstrap_servers, f"orders-{unique}", **admin, **{"sasl.password": "secret"})
    everybody = keys(guarded.bootstrap_servers, guarded.bootstrap_servers)

    allowed = findings(everybody | login("A", "admin", "secret") | login("B", "admin", "secret"))
    assert not [finding for finding in allowed.values() if finding.health is Health.FAILED]
    assert allowed["A->B: read the topics on A"].health is Health.OK
    assert allowed["A->B: give remote topics ACLs on B"].health is Health.OK

    found = findings(everybody | login("A", "admin", "secret") | login("B", "guest", "guest"))
    assert found["A->B: take the lease on B"].health is not Health.OK
    lease = found["A->B: keep drivers of older versions out on B"]
    assert lease.health is Health.FAILED
    assert lease.remedy == (
        f"kafka-acls.sh --bootstrap-server {guarded.bootstrap_servers} --add --allow-principal 'User:guest' "
        "--operation Read --group 'srm-A->B'"
    )
    assert found["A->B: create topics on B"].health is Health.UNKNOWN
    acls = found["A->B: give remote topics ACLs on B"]
    assert acls.health is Health.UNKNOWN
    assert acls.remedy.endswith("'User:guest' --operation Alter --cluster")


def test_configs_that_may_not_be_changed_are_told(findings: Examine, guarded: LocalKafka, unique: str) -> None:
    admin = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "admin"}
    for topic in (f"t-{unique}", f"A.t-{unique}"):
        create(guarded.bootstrap_servers, topic, **admin, **{"sasl.password": "secret"})
    logins = login("A", "admin", "secret") | login("B", "guest", "guest")
    properties = {key.removeprefix("A."): value for key, value in logins.items() if key.startswith("A.")}
    may_write = Acl(f"A.t-{unique}", "LITERAL", "User:guest", "*", "WRITE", "ALLOW")
    cluster = ClusterClient(ClusterSettings("B", guarded.bootstrap_servers, properties), TargetUnavailable)
    assert cluster.add_acls([may_write]) == {may_write: None}

    found = findings(keys(guarded.bootstrap_servers, guarded.bootstrap_servers, **{"A->B.topics": "t-.*"}) | logins)
    configs = found["A->B: keep the configs of remote topics on B"]
    assert configs.health is Health.WARNED
    assert configs.remedy.endswith(f"'User:guest' --operation AlterConfigs --topic 'A.t-{unique}'")


@pytest.mark.parametrize(
    ("mode", "asked"),
    [
        ({}, ("fence off older writers", "srm-A->B-records", Health.WARNED)),
        ({"A->B.exactly.once.support": "required"}, ("write in transactions", "srm-A->B-0", Health.FAILED)),
    ],
    ids=["default", "exactly once"],
)
def test_the_right_to_describe_a_transactional_id_is_not_taken_for_that_to_write(
    findings: Examine, guarded: LocalKafka, mode: Keys, asked: tuple[str, str, Health]
) -> None:
    check, name, lacking = asked
    logins = login("A", "admin", "secret") | login("B", "guest", "guest")
    written = {**keys(guarded.bootstrap_servers, guarded.bootstrap_servers), **logins, **mode}
    for operation, health in ((None, lacking), (AclOperation.DESCRIBE, lacking), (AclOperation.WRITE, Health.OK)):
        if operation is not None:
            allow(guarded.bootstrap_servers, name, operation)
        found = findings(written)[f"A->B: {check} on B"]
        assert found.health is health, operation
        assert health is Health.OK or f"allow WRITE on transactional id {name}" in found.found


def allow(bootstrap_servers: str, name: str, operation: AclOperation) -> None:
    """Let `guest` do it to a transactional id."""
    credentials = {"sasl.username": "admin", "sasl.password": "secret"}
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", **credentials}
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, **login})
    kind, literal, allowed = ResourceType.TRANSACTIONAL_ID, ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    binding = AclBinding(kind, name, literal, "User:guest", "*", operation, allowed)
    admin.create_acls([binding])[binding].result()


def test_the_command_prints_everything_and_exits_1(tmp_path: Path, primary: KafkaCluster) -> None:
    path = write(tmp_path / "srm.properties", keys(primary.bootstrap_servers, "nowhere.invalid:1"))
    done = CliRunner().invoke(run, ["doctor", "--config", str(path), "--output", "json"])
    assert done.exit_code == 1
    answer = {finding["check"]: finding["health"] for finding in json.loads(done.stdout)}
    assert (answer["Python"], answer["cluster A"], answer["cluster B"]) == ("ok", "ok", "failed")

    done = CliRunner().invoke(run, ["--config", str(path), "doctor"])
    assert "failed  cluster B: nowhere.invalid:1: the host name cannot be resolved" in done.stdout


def told_by_the_service(path: Path) -> tuple[int, dict[str, dict[str, str]]]:
    """The exit code of its doctor, and findings by the name of their check."""
    done = CliRunner().invoke(service, ["doctor", "--config", str(path), "--output", "json"])
    return done.exit_code, {one["check"]: one for one in json.loads(done.stdout)}


def test_a_service_whose_address_and_reports_are_fine_and_what_spoils_them(
    tmp_path: Path, secondary: KafkaCluster, unique: str
) -> None:
    flow, target = Flow(f"a{unique}", f"b{unique}"), Kafka(secondary)
    name, topic = str(flow), metrics_topic(flow)
    target.create(topic)
    (port,) = free_ports(1)
    clusters = {flow.source: secondary, flow.target: secondary}
    path = write_config(tmp_path / "srm.properties", clusters, [name], {"service.listen": f"127.0.0.1:{port}"})
    code, found = told_by_the_service(path)
    assert (code, found[f"{name}: newest report"]["health"]) == (0, "unknown"), "no driver has reported yet"

    report(target, flow, "t", int(time.time() * 1000))
    code, found = told_by_the_service(path)
    assert code == 0
    for check in ("address", f"cluster {flow.target}", f"read reports on {flow.target}", f"{name}: newest report"):
        assert found[check]["health"] == "ok", found[check]
    assert not found.keys() & {f"{name}: version of reports", f"{name}: records in {topic}"}

    with socket.create_server(("127.0.0.1", port)):
        code, found = told_by_the_service(path)
    assert (code, found["address"]["health"]) == (1, "failed")
    assert "end what listens there" in found["address"]["remedy"]
    assert found[f"{name}: newest report"]["health"] == "ok", "the other checks go on"

    later = int(time.time() * 1000) + 3_600_000
    key, value = encode(FlowSample(flow, "host/2/1", later, 30.0, 30.0, FlowState.RUNNING))
    newer = json.dumps({**json.loads(value), "v": 1000}).encode()
    target.write(topic, [Record(b"key", b"garbage"), Record(b"", b"{}"), Record(key, newer)])
    code, found = told_by_the_service(path)
    assert code == 0, "warned is not failed"
    garbage, version = found[f"{name}: records in {topic}"], found[f"{name}: version of reports"]
    assert (garbage["health"], garbage["found"].split()[0]) == (Health.WARNED.value, "2")
    assert (version["health"], version["found"].split()[0]) == (Health.WARNED.value, "1")
    assert version["remedy"] == "update srm-spark on this machine"
    assert found[f"{name}: newest report"]["health"] == "ok", "what is none is none"

    target.write(topic, [Record(key, value)])
    code, found = told_by_the_service(path)
    assert (code, found[f"{name}: newest report"]["health"]) == (0, Health.WARNED.value)
    assert "ahead" in found[f"{name}: newest report"]["found"]


def test_a_service_that_may_not_read_its_reports(tmp_path: Path, guarded: LocalKafka, unique: str) -> None:
    flow = Flow(f"a{unique}", "B")
    topic, check = metrics_topic(flow), "read reports on B"
    admin = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "admin"}
    create(guarded.bootstrap_servers, topic, **admin, **{"sasl.password": "secret"})
    logins = login("B", "guest", "guest")
    listen = {"service.listen": f"127.0.0.1:{free_ports(1)[0]}", "admin.timeout.ms": "4000"}
    path = write_config(tmp_path / "srm.properties", {flow.source: guarded, "B": guarded}, [str(flow)], logins | listen)

    code, found = told_by_the_service(path)
    assert (code, found[check]["health"]) == (0, "unknown"), "a topic that may not be described is not seen"

    for operation, health in (("DESCRIBE", "failed"), ("READ", "ok")):
        allow_on_topic(guarded.bootstrap_servers, topic, operation)
        code, found = told_by_the_service(path)
        assert (code, found[check]["health"]) == (int(health == "failed"), health), found[check]
        if health == "failed":
            assert f"lack READ: {topic}" in found[check]["found"]
            assert found[check]["remedy"].endswith(f"'User:guest' --operation Read --topic '{topic}'")


def allow_on_topic(bootstrap_servers: str, topic: str, operation: str) -> None:
    """Let `guest` do it to a topic."""
    properties = {key.removeprefix("B."): value for key, value in login("B", "admin", "secret").items()}
    cluster = ClusterClient(ClusterSettings("B", bootstrap_servers, properties), TargetUnavailable)
    allowed = Acl(topic, "LITERAL", "User:guest", "*", operation, "ALLOW")
    assert cluster.add_acls([allowed]) == {allowed: None}
