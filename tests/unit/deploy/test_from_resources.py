"""Resources of Strimzi and of CSM Operator in, files of a deployment out; what has no counterpart is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from srm_spark.cli.options import ERROR, OK, USAGE
from srm_spark.config.load import load_settings

SAMPLES = Path(__file__).parent.parent / "config" / "samples"
MIRROR = """apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata: {name: mirror}
spec:
  connectCluster: west
  clusters:
    - alias: east
      bootstrapServers: east:9093
      tls:
        trustedCertificates:
          - {secretName: east-ca, certificate: ca.crt}
          - {secretName: old-ca, certificate: ca.crt}
          - {secretName: more, pattern: "*.crt"}
      authentication:
        type: scram-sha-512
        username: me
        passwordSecret: {secretName: my-user, password: password}
    - alias: west
      bootstrapServers: west:9093
      tls: {}
      authentication:
        type: tls
        certificateAndKey: {secretName: west-user, certificate: user.crt, key: user.key}
  mirrors:
    - sourceCluster: east
      targetCluster: west
      topicsPattern: "orders|payments"
      sourceConnector: {config: {replication.factor: 2}}
"""


def deployed(folder: Path, *more: str, resource: str = MIRROR) -> Result:
    (folder / "mm2.yaml").write_text(resource)
    words = ["deploy", "kubernetes", "--from", str(folder / "mm2.yaml"), "--out", str(folder / "out"), "--image", "i:1"]
    return CliRunner().invoke(main, [*words, *more])


def volumes(folder: Path) -> dict[str, Any]:
    document = yaml.safe_load((folder / "out" / "deployment.yaml").read_text())
    return {volume["name"]: volume for volume in document["spec"]["template"]["spec"]["volumes"]}


def written(folder: Path) -> str:
    document = yaml.safe_load((folder / "out" / "configmap.yaml").read_text())
    return str(document["data"]["srm.properties"])


def test_logins_of_strimzi_come_from_the_secrets_that_it_names(tmp_path: Path) -> None:
    result = deployed(tmp_path)
    assert result.exit_code == OK, result.output
    sources = {
        one["secret"]["name"]: one["secret"]["items"] for one in volumes(tmp_path)["secrets"]["projected"]["sources"]
    }
    assert {name: [item["key"] for item in items] for name, items in sources.items()} == {
        "my-user": ["password"],
        "east-ca": ["ca.crt"],
        "old-ca": ["ca.crt"],
        "west-user": ["user.crt", "user.key"],
    }
    assert "create secret" not in result.stdout, "all of them are there"
    assert "my-user-password (secret): password in the Secret my-user, which the Secret my-user has" in result.stdout
    assert "mm2.yaml:13: east.tls.trustedCertificates: ignored" in result.stderr


def test_the_translated_configuration_runs_where_the_secrets_are(tmp_path: Path) -> None:
    assert deployed(tmp_path).exit_code == OK
    folder = tmp_path / "mounted"
    folder.mkdir()
    for source in volumes(tmp_path)["secrets"]["projected"]["sources"]:
        for item in source["secret"]["items"]:
            (folder / item["path"]).write_text(f"{source['secret']['name']}/{item['key']}")
    text = written(tmp_path).replace("/etc/srm-spark/secrets", str(folder))
    # Certificates that are none cannot be opened: what there would be is looked at, and the login by password kept.
    assert "west.ssl.keystore.key=${dir\\:" in text
    assert "east.ssl.truststore.certificates=${dir\\:" in text
    text = "\n".join(line for line in text.splitlines() if ".ssl." not in line) + "\nwest.security.protocol=PLAINTEXT\n"
    (tmp_path / "srm.properties").write_text(text)
    settings = load_settings(tmp_path / "srm.properties")
    [flow] = settings.flows
    assert str(flow.flow) == "east->west"
    assert flow.topics.include == ("orders|payments",)
    assert flow.topics.replication_factor == 2
    assert flow.source.properties["security.protocol"] == "SASL_SSL"
    assert 'username="me" password="my-user/password"' in flow.source.properties["sasl.jaas.config"]


def test_an_oauth_login_and_what_of_it_has_no_counterpart(tmp_path: Path) -> None:
    oauth = """type: oauth
        tokenEndpointUri: https://idp.example/token
        clientId: me
        clientSecret: {secretName: idp, key: secret}
        maxTokenExpirySeconds: 60
"""
    resource = MIRROR.replace("passwordSecret: {secretName: my-user, password: password}\n", "")
    resource = resource.replace("type: scram-sha-512\n        username: me\n        ", oauth)
    result = deployed(tmp_path, resource=resource)
    assert result.exit_code == OK, result.output
    text = written(tmp_path)
    assert "east.sasl.mechanism=OAUTHBEARER\n" in text
    assert "east.sasl.oauthbearer.token.endpoint.url=https\\://idp.example/token\n" in text
    assert 'clientId\\="me" clientSecret\\="${dir\\:/etc/srm-spark/secrets\\:idp-secret}"' in text
    assert "east.authentication.maxTokenExpirySeconds: ignored" in result.stderr


def test_a_file_of_ours_wins_over_the_resource(tmp_path: Path) -> None:
    own = tmp_path / "own.properties"
    own.write_text("east->west.topics = orders\n")
    assert deployed(tmp_path, "--config", str(own)).exit_code == OK
    assert "east->west.topics=orders\n" in written(tmp_path)


@pytest.mark.parametrize("name", ["strimzi.yaml", "csm-operator.yaml"])
def test_samples_are_translated(tmp_path: Path, name: str) -> None:
    connect = (
        "\n---\napiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaConnect\nmetadata: {name: c}\nspec: {replicas: 3}\n"
    )
    result = deployed(tmp_path, resource=(SAMPLES / name).read_text() + connect)
    assert result.exit_code == OK, result.output
    assert "kind: KafkaConnect: ignored" in result.stderr
    assert "apiVersion" not in written(tmp_path)


def test_secrets_of_connectors_are_mounted_and_configmaps_refused(tmp_path: Path) -> None:
    connector = """kind: KafkaConnector
spec:
  class: org.apache.kafka.connect.mirror.MirrorSourceConnector
  config:
    topics: test
    source.cluster.alias: a
    source.cluster.bootstrap.servers: a:9092
    source.cluster.security.protocol: SASL_PLAINTEXT
    source.cluster.sasl.mechanism: PLAIN
    source.cluster.sasl.jaas.config: ${secrets:kafka/login:jaas}
    target.cluster.alias: b
    target.cluster.bootstrap.servers: b:9092
"""
    assert deployed(tmp_path, resource=connector).exit_code == OK
    [source] = volumes(tmp_path)["secrets"]["projected"]["sources"]
    assert source["secret"] == {"name": "login", "items": [{"key": "jaas", "path": "login-jaas"}]}
    mapped = connector + "    replication.policy.class: ${cfmap:kafka/map:policy}\n"
    refused = deployed(tmp_path, resource=mapped)
    assert refused.exit_code == ERROR
    assert "mm2.yaml:13: a->b.replication.policy.class: got ${cfmap:kafka/map:policy}: no driver can" in refused.stderr


def test_a_file_that_is_no_resource_is_refused(tmp_path: Path) -> None:
    text = "clusters: [A, B]\nA.bootstrap.servers: a:1\nB.bootstrap.servers: b:1\nA->B.enabled: true\nA->B.topics: x\n"
    result = deployed(tmp_path, resource=text)
    assert result.exit_code == ERROR
    assert "mm2.yaml: holds no KafkaMirrorMaker2" in result.stderr


def test_something_has_to_be_deployed(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["deploy", "yarn", "--out", str(tmp_path)])
    assert result.exit_code == USAGE
    assert "--config FILE, --from FILE" in result.stderr
