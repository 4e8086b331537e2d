"""A resource of Strimzi runs as it is, or says what it loses."""

from __future__ import annotations

from pathlib import Path

from srm_spark.config.load import load
from tests.unit.config.conftest import Loader, problems

RESOURCE = Path(__file__).parent / "samples" / "strimzi.yaml"


def test_clusters_and_mirrors_become_flows() -> None:
    found = load([RESOURCE])
    assert problems(found) == []
    (flow,) = found.settings.flows
    assert str(flow.flow) == "east->west"
    assert flow.topics.include == ("orders|payments",)
    assert (flow.topics.replication_factor, flow.syncs.replication_factor) == (1, -1)
    assert flow.source.properties == {"security.protocol": "SSL"}
    assert flow.batch.tasks_max == 5
    assert flow.producer == {"compression.type": "zstd"}
    assert flow.progress_replication_factor == 1
    assert flow.checkpoints.sync_enabled


def test_what_belongs_to_kubernetes_is_named() -> None:
    warnings = "\n".join(load([RESOURCE]).settings.warnings)
    for expected in (
        "strimzi.yaml:7: spec.replicas: ignored",
        "strimzi.yaml:13: east.ssl.truststore.location: is a secret of Kubernetes; mount it",
        "east->west.sourceConnector.autoRestart: ignored",
        "spec.resources: ignored",
    ):
        assert expected in warnings


def test_what_is_unknown_is_named_with_what_may_be_meant(loaded: Loader) -> None:
    text = """kind: KafkaMirrorMaker2
spec:
  mirors: []
  clusters:
    - {alias: east, bootstrapServers: "e:1", bootstrapServer: "f:1", groupId: g}
    - {alias: west, bootstrapServers: "w:1"}
  mirrors:
    - {sourceCluster: east, targetCluster: west, sourceConnector: {cofig: {a: b}}, topicPattern: x}
"""
    warnings = "\n".join(loaded(text, name="mm2.yaml", base="").settings.warnings)
    for expected in (
        "mm2.yaml:3: spec.mirors: ignored: unknown in a KafkaMirrorMaker2; did you mean mirrors?",
        "mm2.yaml:5: east.bootstrapServer: ignored: unknown in a cluster; did you mean bootstrapServers?",
        "mm2.yaml:5: east.groupId: ignored: unknown in a cluster",
        "east->west.sourceConnector.cofig: ignored: unknown in a connector; did you mean config?",
        "east->west.topicPattern: ignored: unknown in a mirror; did you mean topicsPattern?",
    ):
        assert expected in warnings, warnings


def test_a_second_file_brings_the_secrets(tmp_path: Path) -> None:
    keys = "east.ssl.truststore.type = PEM\neast.ssl.truststore.certificates = ${env:HOME}\n"
    (tmp_path / "more.properties").write_text(keys)
    found = problems(load([RESOURCE, tmp_path / "more.properties"]))
    assert "east.ssl.truststore.certificates|no block -----BEGIN" in "\n".join(found)


def test_the_newer_form_names_the_target_once(loaded: Loader) -> None:
    text = """kind: KafkaMirrorMaker2
spec:
  target: {alias: west, bootstrapServers: "w:1", authentication: {type: scram-sha-512, username: u}}
  mirrors:
    - source: {alias: east, bootstrapServers: "e:1"}
      topicsPattern: x
"""
    found = loaded(text, base="", name="x.yaml")
    assert [str(flow.flow) for flow in found.settings.flows] == ["east->west"]
    assert found.settings.clusters["west"].properties == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
    }
    assert "SCRAM-SHA-512 needs username in sasl.jaas.config" in "\n".join(problems(found))


def test_an_empty_resource_is_a_problem_not_a_crash(loaded: Loader) -> None:
    for spec in ("", "spec: {clusters: [1], mirrors: [x, {}], target: 3}\n"):
        assert problems(loaded(f"kind: KafkaMirrorMaker2\n{spec}", base="", name="x.yaml"))


def test_connectors_of_csm_operator() -> None:
    found = load([RESOURCE.with_name("csm-operator.yaml")])
    assert problems(found) == []
    (flow,) = found.settings.flows
    assert str(flow.flow) == "us-west->us-east"
    assert (flow.source.bootstrap_servers, flow.target.bootstrap_servers) == ("source:9092", "target:9092")
    assert (flow.topics.include, flow.batch.tasks_max) == (("orders", "payments"), 10)
    assert flow.consumer["fetch.min.bytes"] == "2"
    assert flow.checkpoints.emit_seconds == 10
    assert {beat.interval_seconds for beat in found.settings.heartbeats if beat.enabled} == {3.0}
    assert "us-west->us-east.target.cluster.bootstrap.servers: ignored" in "\n".join(found.settings.warnings)


CONNECTOR = """\
kind: KafkaConnector
spec:
  class: org.apache.kafka.connect.mirror.Mirror{kind}Connector
  config:
    topics: test
    groups: testgroup
    source.cluster.alias: {source}
    source.cluster.bootstrap.servers: source-cluster:9092
    target.cluster.alias: {target}
    target.cluster.bootstrap.servers: target-cluster:9092
"""


def test_resources_that_disagree_where_a_cluster_is_are_refused(tmp_path: Path) -> None:
    """Cloudera's own example has the aliases of the second one swapped: it would write the source."""
    paths = [tmp_path / "source.yaml", tmp_path / "checkpoint.yaml"]
    paths[0].write_text(CONNECTOR.format(kind="Source", source="us-west", target="us-east"))
    paths[1].write_text(CONNECTOR.format(kind="Checkpoint", source="us-east", target="us-west"))
    found = [problem for problem in problems(load(paths)) if "two clusters" in problem]
    assert [problem.split("|")[:2] for problem in found] == [
        ["checkpoint.yaml:8", "us-east.bootstrap.servers"],
        ["checkpoint.yaml:10", "us-west.bootstrap.servers"],
    ]
    assert "got source-cluster:9092, and target-cluster:9092 at " in found[0]
    turned = CONNECTOR.format(kind="Checkpoint", source="us-west", target="us-east")
    paths[1].write_text(turned.replace("source-cluster:9092", '"source-cluster:9092 "'))
    loaded = load(paths)
    assert problems(loaded) == []
    assert loaded.settings.flows[0].checkpoints.groups == ("testgroup",)


def test_a_checkpoint_connector_whose_flow_nobody_runs_is_told(tmp_path: Path) -> None:
    paths = [tmp_path / "source.yaml", tmp_path / "checkpoint.yaml"]
    paths[0].write_text(CONNECTOR.format(kind="Source", source="us-west", target="us-east"))
    turned = CONNECTOR.format(kind="Checkpoint", source="us-east", target="us-west")
    paths[1].write_text("\n".join(line for line in turned.splitlines() if "bootstrap" not in line))
    warnings = "\n".join(load(paths).settings.warnings)
    assert (
        "checkpoint.yaml:6: us-east->us-west.groups: has no effect: no source connector runs us-east->us-west"
        in warnings
    )
