"""Java client properties in the words of librdkafka and Spark."""

from __future__ import annotations

import pytest

from srm_spark.config import librdkafka, spark_kafka_options, unmapped
from srm_spark.config.jaas import JaasError, parse_jaas
from srm_spark.config.keys_client import CLIENT_KEYS
from srm_spark.config.render import translate
from srm_spark.config.sasl import sasl_problem
from srm_spark.config.settings import ClusterSettings
from tests.unit.config.conftest import Loader

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="us er" password="p;=\\"w";'


def _cluster(**properties: str) -> ClusterSettings:
    return ClusterSettings("A", "a:1,a:2", {name.replace("_", "."): value for name, value in properties.items()})


def test_producer_properties() -> None:
    extra = {
        "compression.type": "zstd",
        "compression.zstd.level": "7",
        "compression.gzip.level": "3",
        "max.request.size": "2000000",
        "buffer.memory": "33554432",
        "delivery.timeout.ms": "2147483647",
        "request.timeout.ms": "900000",
        "linger.ms": "5",
        "batch.size": "0",
        "acks": "all",
        "max.block.ms": "1",
    }
    assert librdkafka(_cluster(), extra) == {
        "bootstrap.servers": "a:1,a:2",
        "compression.type": "zstd",
        "compression.level": "7",
        "message.max.bytes": "2000000",
        "queue.buffering.max.kbytes": "32768",
        "delivery.timeout.ms": "2147483647",
        "socket.timeout.ms": "300000",
        "linger.ms": "5",
        "batch.size": "1",
        "acks": "all",
    }
    assert list(unmapped(_cluster(), extra)) == ["max.block.ms"]


def test_consumer_properties() -> None:
    extra = {
        "isolation.level": "read_committed",
        "auto.offset.reset": "none",
        "fetch.max.wait.ms": "100",
        "max.poll.records": "5",
        "connections.max.idle.ms": "-1",
        "no.such.thing": "1",
    }
    rendered = translate(extra)
    assert rendered.options == {
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": "100",
        "connections.max.idle.ms": "0",
    }
    assert set(rendered.unmapped) == {"max.poll.records", "no.such.thing"}


def test_nothing_is_dropped_in_silence() -> None:
    for name, row in CLIENT_KEYS.items():
        if not row.librdkafka:
            assert row.note, name
        if name.startswith(("ssl.", "sasl.")):
            continue
        rendered = translate({name: "1", "compression.type": name.split(".")[1]} if ".level" in name else {name: "1"})
        assert (row.librdkafka in rendered.options) != (name in rendered.unmapped), name


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_user_and_password_come_from_the_login_module(mechanism: str) -> None:
    cluster = _cluster(security_protocol="SASL_SSL", sasl_mechanism=mechanism, sasl_jaas_config=PLAIN)
    assert librdkafka(cluster, {}) == {
        "bootstrap.servers": "a:1,a:2",
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": mechanism,
        "sasl.username": "us er",
        "sasl.password": 'p;="w',
    }
    assert sasl_problem("SASL_SSL", cluster.properties) is None


def test_oauth_by_client_credentials() -> None:
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "http://idp/token",
        "sasl.login.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
        ),
        "sasl.jaas.config": "x.OAuthBearerLoginModule required clientId='id' clientSecret='sec' scope=s extension_a=b;",
        "sasl.oauthbearer.expected.audience": "x",
    }
    rendered = translate(properties)
    assert rendered.options == {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "http://idp/token",
        "sasl.oauthbearer.client.id": "id",
        "sasl.oauthbearer.client.secret": "sec",
        "sasl.oauthbearer.scope": "s",
        "sasl.oauthbearer.extensions": "a=b",
    }
    assert list(rendered.unmapped) == ["sasl.oauthbearer.expected.audience"]


def test_oauth_by_signed_assertion() -> None:
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
        "sasl.oauthbearer.jwt.retriever.class": "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever",
        "sasl.oauthbearer.assertion.private.key.file": "/key.pem",
        "sasl.oauthbearer.assertion.template.file": "/t.json",
    }
    rendered = translate(properties)
    assert rendered.options["sasl.oauthbearer.grant.type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert rendered.options["sasl.oauthbearer.assertion.jwt.template.file"] == "/t.json"
    assert rendered.unmapped == {}
    assert sasl_problem("SASL_SSL", properties) is None


def test_kerberos() -> None:
    module = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab='/k' principal='p@R';"
    rendered = translate(
        {"security.protocol": "SASL_SSL", "sasl.kerberos.service.name": "kafka", "sasl.jaas.config": module}
    )
    assert rendered.options["sasl.mechanism"] == "GSSAPI"
    assert rendered.options["sasl.kerberos.keytab"] == "/k"
    assert rendered.options["sasl.kerberos.principal"] == "p@R"
    cached = "x.Krb5LoginModule required useTicketCache=true serviceName=kafka;"
    rendered = translate({"security.protocol": "SASL_SSL", "sasl.jaas.config": cached})
    assert rendered.options["sasl.kerberos.kinit.cmd"] == "true"
    assert rendered.options["sasl.kerberos.service.name"] == "kafka"


def test_settings_of_another_protocol_are_handed_back() -> None:
    rendered = translate({"ssl.key.password": "x", "sasl.mechanism": "PLAIN"})
    assert rendered.options == {}
    assert rendered.unmapped["ssl.key.password"] == "counts only with TLS; security.protocol is PLAINTEXT"
    left = translate(
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.oauthbearer.scope": "s"}
    ).unmapped
    assert left == {"sasl.oauthbearer.scope": "counts only with another sasl.mechanism than PLAIN"}


@pytest.mark.parametrize(
    ("mechanism", "key", "words"),
    [
        ("PLAIN", "sasl.jaas.config", "PLAIN needs username in sasl.jaas.config and password"),
        ("OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url", "OAUTHBEARER needs"),
        ("GSSAPI", "sasl.kerberos.service.name", "GSSAPI needs"),
        ("MAGIC", "sasl.mechanism", "got MAGIC; allowed PLAIN"),
    ],
)
def test_what_a_login_lacks(mechanism: str, key: str, words: str) -> None:
    problem = sasl_problem("SASL_SSL", {"sasl.mechanism": mechanism})
    assert problem is not None
    assert problem[0] == key
    assert words in problem[1]


def test_a_jaas_entry() -> None:
    entry = parse_jaas('a.b.Module required debug=true user=\'x y\' pass="\\"q\\"" empty="";')
    assert entry.name == "Module"
    assert entry.options == {"debug": "true", "user": "x y", "pass": '"q"', "empty": ""}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.B",
        "a.B required",
        "a.B maybe x=y;",
        'a.B required x="hunter2',
        "a.B required hunter2;",
        "a.B required x=;",
    ],
)
def test_a_broken_jaas_entry_is_explained_without_repeating_it(text: str) -> None:
    with pytest.raises(JaasError) as raised:
        parse_jaas(text)
    assert "hunter2" not in str(raised.value)


def test_spark_gets_java_properties_and_never_creates_topics() -> None:
    cluster = _cluster(security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_jaas_config=PLAIN)
    extra = {"isolation.level": "read_committed", "auto.offset.reset": "latest", "enable.auto.commit": "true"}
    assert spark_kafka_options(cluster, extra, 60) == {
        "kafka.bootstrap.servers": "a:1,a:2",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": PLAIN,
        "kafka.isolation.level": "read_committed",
        "kafka.allow.auto.create.topics": "false",
        "kafka.request.timeout.ms": "30000",
        "kafka.default.api.timeout.ms": "60000",
    }


@pytest.mark.parametrize(
    ("written", "request_ms", "call_ms"),
    [
        ({}, "8000", "8000"),
        ({"request.timeout.ms": "2000"}, "2000", "8000"),
        ({"request.timeout.ms": "20000"}, "20000", "20000"),  # Java refuses a call shorter than its requests
        ({"default.api.timeout.ms": "5000"}, "5000", "5000"),
        ({"default.api.timeout.ms": "90000"}, "30000", "90000"),
    ],
)
def test_spark_waits_for_a_call_as_long_as_we_do(written: dict[str, str], request_ms: str, call_ms: str) -> None:
    options = spark_kafka_options(_cluster(**written), {}, 8)
    assert options["kafka.request.timeout.ms"] == request_ms
    assert options["kafka.default.api.timeout.ms"] == call_ms


def test_no_options_are_shown() -> None:
    assert "us er" not in repr(translate({"security.protocol": "SASL_SSL", "sasl.jaas.config": PLAIN}))


def test_a_file_is_told_what_its_clusters_cannot_use(loaded: Loader) -> None:
    text = "A.ssl.key.password = x\nssl.truststore.type = PEM\nA.ssl.protocol = TLSv1.2\n"
    warnings = "\n".join(loaded(text).settings.warnings)
    assert "srm.properties:5: A.ssl.key.password: counts only with TLS; security.protocol is PLAINTEXT" in warnings
    assert "A.ssl.protocol: ignored: OpenSSL takes the newest version" in warnings
    assert "ssl.truststore.type" not in warnings


@pytest.mark.parametrize(
    "written",
    [
        {"sasl.jaas.config": 'a.b.OAuthBearerLoginModule required clientId="me" clientSecret="x\\"\\\\y" scope="s";'},
        {
            "sasl.oauthbearer.client.credentials.client.id": "me",
            "sasl.oauthbearer.client.credentials.client.secret": 'x"\\y',
            "sasl.oauthbearer.scope": "s",
        },
    ],
)
def test_spark_logs_in_with_a_token_however_it_is_written(written: dict[str, str]) -> None:
    oauth = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", **written}
    options = spark_kafka_options(_cluster(**oauth), {}, 60)
    entry = parse_jaas(options["kafka.sasl.jaas.config"])
    assert entry.name == "OAuthBearerLoginModule"
    assert entry.options == {"clientId": "me", "clientSecret": 'x"\\y', "scope": "s"}
    assert options["kafka.sasl.login.callback.handler.class"].endswith(".OAuthBearerLoginCallbackHandler")
    assert not [name for name in options if "credentials" in name]
