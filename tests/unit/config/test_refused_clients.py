"""What librdkafka itself would refuse is a problem of the file, and what srm-spark overrules is told."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from srm_spark.config.keys_client import CLIENT_KEYS
from srm_spark.config.settings import FlowSettings
from srm_spark.kafka.clients import QUIET, options
from srm_spark.kafka.fetch import fetch_options
from srm_spark.kafka.producers import delivery_timeout, record_options
from srm_spark.kafka.tokens import with_tokens
from tests.unit.config.conftest import Loader, problems
from tests.unit.config.identities import CA, CLIENT

KERBEROS = "B.security.protocol = SASL_PLAINTEXT\nB.sasl.mechanism = GSSAPI\nB.sasl.kerberos.service.name = kafka\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("B.producer.retries = 0", "`retries` must be set >= 1"),
        ("B.producer.max.in.flight.requests.per.connection = 6", "`max.in.flight` must be set <= 5"),
        ("A.consumer.fetch.max.bytes = 10", "`fetch.max.bytes` must be >= `message.max.bytes`"),
        ("A.admin.client.dns.lookup = sometimes", "Invalid value"),
        ("A->B.producer.override.linger.ms = soon", "allowed a whole number"),
    ],
)
def test_what_the_client_would_refuse_is_a_problem_at_its_line(loaded: Loader, line: str, reason: str) -> None:
    (problem,) = problems(loaded(line))
    place, key, message, _ = problem.split("|")
    assert (place, key) == ("srm.properties:5", line.partition(" ")[0])
    assert reason in message


def test_a_login_that_this_client_was_built_without_is_a_problem_with_the_remedy(loaded: Loader) -> None:
    (problem,) = problems(loaded(KERBEROS))
    assert problem.startswith("srm.properties:6|B.sasl.mechanism|the client library refuses it: ")
    assert "GSSAPI" in problem
    assert "--no-binary confluent-kafka" in problem


_ASSERTION = (
    "B.security.protocol = SASL_PLAINTEXT\nB.sasl.mechanism = OAUTHBEARER\n"
    "B.sasl.oauthbearer.token.endpoint.url = https://idp/token\n"
    "B.sasl.oauthbearer.jwt.retriever.class = org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever\n"
)
_KEY_FILE = "B.sasl.oauthbearer.assertion.private.key.file = /etc/srm/key.pem\n"


@pytest.mark.parametrize(
    ("lines", "place", "reason"),
    [
        ("", "5|B.security.protocol", "assertion.private.key.file"),
        (f"{_KEY_FILE}B.sasl.oauthbearer.assertion.algorithm = HS256", "10|", 'Invalid value "HS256"'),
        (f"{_KEY_FILE}B.sasl.oauthbearer.assertion.claim.exp.seconds = 0", "10|", "outside allowed range"),
        ("B.sasl.oauthbearer.assertion.file = /etc/srm/token\n" + _KEY_FILE, "9|", "Mutually exclusive"),
    ],
)
def test_what_a_login_by_tokens_lacks_is_a_problem_at_its_line(
    loaded: Loader, lines: str, place: str, reason: str
) -> None:
    (problem,) = problems(loaded(_ASSERTION + lines))
    assert problem.startswith(f"srm.properties:{place}")
    assert reason in problem


@pytest.mark.parametrize("key", ["A->B.exactly.once.support = required", "B.exactly.once.source.support = enabled"])
def test_a_login_that_only_librdkafka_makes_has_no_exactly_once_mode(loaded: Loader, key: str) -> None:
    login = f"{_ASSERTION}{_KEY_FILE}B.sasl.oauthbearer.assertion.claim.iss = me\n"
    (problem,) = problems(loaded(f"{login}{key}\n"))
    assert problem.startswith(f"srm.properties:11|{key.partition(' ')[0]}|")
    assert "SCRAM" in problem
    assert problems(loaded(login)) == []


def test_kerberos_has_no_exactly_once_mode(loaded: Loader) -> None:
    found = problems(loaded(f"{KERBEROS}A->B.exactly.once.support = required\n"))
    assert any(problem.startswith("srm.properties:8|A->B.exactly.once.support|") for problem in found)


def test_the_exactly_once_mode_can_be_had(loaded: Loader) -> None:
    found = loaded("A->B.exactly.once.support = required\nB.producer.transaction.timeout.ms = 500\n")
    assert problems(found) == []


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("A.consumer.max.poll.records = 5", "see `batch.max.records`"),
        ("A.consumer.partition.assignment.strategy = x", "no group is joined"),
        ("A.consumer.fetch.max.wait.ms = 9", "no fetch waits"),
        ("A.consumer.group.id = mine", "no group is joined"),
        ("A.consumer.default.api.timeout.ms = 9", "admin.timeout.ms"),
        ("A.consumer.interceptor.classes = x.Y", "Java classes"),
        ("B.producer.acks = 1", "all in-sync replicas"),
        ("B.producer.enable.idempotence = false", "doubles records"),
        ("B.producer.delivery.timeout.ms = 900000", "looks like one that hangs"),
        ("B.producer.transactional.id = mine", "srm-spark chooses it"),
        ("B.producer.transaction.timeout.ms = 500", "srm-spark chooses it"),
        ("B.producer.partitioner.class = x.Y", "Every record keeps its partition"),
        ("B.consumer.fetch.min.bytes = 9", "no flow reads from B"),
        ("A->B.target.consumer.fetch.min.bytes = 9", "A->B reads from its source"),
        ("A->B.target.producer.linger.ms = 9", "writes no offset syncs to its target"),
        ("A->B.producer.override.linger.ms = 9", "counts for records"),
        ("A.consumer.ssl.protocol = TLSv1.2", "OpenSSL takes the newest version"),
        ("A.consumer.sasl.login.class = x.Y", "Java class"),
    ],
)
def test_what_does_not_count_is_told_with_its_line(loaded: Loader, line: str, told: str) -> None:
    found = loaded(line)
    assert problems(found) == []
    key = line.partition(" ")[0]
    assert any(told in text for text in found.settings.warnings if f"srm.properties:5: {key}: " in text)


_CONSUMER_LINES = (
    ("A.consumer.fetch.min.bytes = 9", "waits for no more"),
    ("A.consumer.check.crcs = false", "checksum of each batch is checked"),
    ("A.consumer.request.timeout.ms = 9000", "a connection has 5 s"),
    ("A->B.source.consumer.reconnect.backoff.max.ms = 9000", "tried again at once"),
)
_PRODUCER_LINES = (
    ("B.producer.linger.ms = 99", "waits for no more"),
    ("B.producer.retries = 9", "until `delivery.timeout.ms`"),
    ("B.producer.retry.backoff.ms = 9", "tried again at once"),
    ("A->B.producer.override.metadata.max.age.ms = 9", "who leads a partition"),
)
_LIMITED_LINES = (
    ("A.consumer.fetch.max.bytes = 99999999", "counts as 67108864"),
    ("A.consumer.max.partition.fetch.bytes = 99999999", "counts as 16777216"),
    ("B.producer.buffer.memory = 99999999", "counts as 33554432"),
    ("B.producer.max.request.size = 9999999", "counts as 4194304"),
    ("B.producer.request.timeout.ms = 999", "counts from 1000 to 300000"),
    ("B.producer.request.timeout.ms = 300001", "counts from 1000 to 300000"),
)
_EXACTLY_ONCE = "A->B.exactly.once.support = required\n"


@pytest.mark.parametrize(("line", "told"), [*_CONSUMER_LINES, *_PRODUCER_LINES])
@pytest.mark.parametrize("mode", ["", _EXACTLY_ONCE], ids=["default", "exactly-once"])
def test_what_counts_only_where_librdkafka_moves_records_is_told(
    loaded: Loader, mode: str, line: str, told: str
) -> None:
    key = line.partition(" ")[0]
    words = f"srm.properties:5: {key}: counts for records only where librdkafka moves them, as with a login by Kerberos"
    found = loaded(f"{line}\n{mode}")
    assert problems(found) == []
    (text,) = [text for text in found.settings.warnings if words in text]
    assert told in text


@pytest.mark.parametrize(("line", "told"), _LIMITED_LINES)
def test_what_counts_up_to_a_limit_in_batches_is_told_beyond_it(loaded: Loader, line: str, told: str) -> None:
    found = loaded(line)
    assert problems(found) == []
    (text,) = [text for text in found.settings.warnings if f"srm.properties:5: {line.partition(' ')[0]}: " in text]
    assert f"{told} where records travel in batches" in text


@pytest.mark.parametrize("line", [line for line, _ in _CONSUMER_LINES])
def test_where_single_records_are_read_the_consumer_counts(loaded: Loader, line: str) -> None:
    found = loaded(f"{line}\nA->B.compiled.loop.enabled = false\nB.producer.linger.ms = 99\n")
    assert problems(found) == []
    (told,) = [text for text in found.settings.warnings if "only where librdkafka" in text]
    assert "B.producer.linger.ms" in told


@pytest.mark.parametrize(
    "line",
    [
        "B.producer.batch.size = 9999",
        "B.producer.compression.type = zstd",
        "B.producer.max.in.flight.requests.per.connection = 1",
        "B.producer.max.request.size = 1048576",
        "B.producer.buffer.memory = 33554432",
        "B.producer.request.timeout.ms = 60000",
        "A.consumer.fetch.max.bytes = 52428800",
        "A.consumer.max.partition.fetch.bytes = 1048576",
        "B.producer.send.buffer.bytes = 99999",
        "A.consumer.receive.buffer.bytes = 99999",
        "A.consumer.check.crcs = true",
        "A.consumer.client.dns.lookup = use_all_dns_ips",
        "A.admin.request.timeout.ms = 9000",
        "B.producer.acks = all",
        "B.producer.enable.idempotence = TRUE",
        "B.producer.delivery.timeout.ms = 600000",
        "A.consumer.isolation.level = read_committed",
    ],
)
def test_what_counts_is_not_told(loaded: Loader, line: str) -> None:
    assert [text for text in loaded(line).settings.warnings if "srm.properties:5" in text] == []


def test_the_isolation_level_is_the_exactly_once_mode_s_own(loaded: Loader) -> None:
    text = "A.consumer.isolation.level = read_uncommitted\nA->B.exactly.once.support = required\n"
    assert any("committed records are copied only" in one for one in loaded(text).settings.warnings)


@pytest.mark.parametrize("name", ["transforms", "predicates", "A->B.transforms"])
def test_transforms_are_refused_unless_they_are_to_be_passed_over(loaded: Loader, name: str) -> None:
    (problem,) = problems(loaded(f"{name} = mask\n"))
    assert problem.startswith(f"srm.properties:5|{name}|got mask: ")
    assert "transforms.ignore = true" in problem
    found = loaded(f"{name} = mask\ntransforms.ignore = true\n")
    assert problems(found) == []
    assert any("records are copied unchanged" in text for text in found.settings.warnings)


_SAMPLES = Path(__file__).parent / "samples"
_MODULE = "org.apache.kafka.common.security.{} required"
_NUMBERS = st.integers(-1, 2**31).map(str)
_WORDS = st.sampled_from(["", "all", "none", "zstd", "true", "false", "use_all_dns_ips", "0", "1", "x"])
_SECRET = ("ssl.", "sasl.", "security.")
_KEYS = st.sampled_from(sorted(name for name in CLIENT_KEYS if not name.startswith(_SECRET)))
_LINES = st.tuples(st.sampled_from(["A.consumer", "B.producer", "A.admin", "B.admin"]), _KEYS, _NUMBERS | _WORDS)
_PEM_FILE = "PEM"
"""Stands for a file with a key and its certificates."""
_NO_CERTIFICATE = "-----BEGIN CERTIFICATE----- eA== -----END CERTIFICATE-----"
_LOGINS = {
    "sasl.mechanism": ["PLAIN", "SCRAM-SHA-256", "scram-sha-512", "OAUTHBEARER", "GSSAPI"],
    "sasl.jaas.config": [
        f'{_MODULE.format("plain.PlainLoginModule")} username="u" password="p";',
        f'{_MODULE.format("scram.ScramLoginModule")} username="u" password="";',
        f'{_MODULE.format("oauthbearer.OAuthBearerLoginModule")} clientId="i" clientSecret="s" extension_a="b";',
        f'{_MODULE.format("oauthbearer.OAuthBearerLoginModule")} clientId="i" extension_auth="b" scope="a b";',
    ],
    "sasl.kerberos.service.name": ["kafka", ""],
    "sasl.kerberos.kinit.cmd": ["true", "%{x}"],
    "sasl.kerberos.min.time.before.relogin": ["0", "60000", "-1", "99999999999"],
    "sasl.login.callback.handler.class": [
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    ],
    "sasl.login.callback.handler.function": [f"{__name__}:token"],
    "sasl.oauthbearer.token.endpoint.url": ["http://127.0.0.1:1/token", "https://127.0.0.1:1", "ftp:/x", "x", ""],
    "sasl.oauthbearer.client.credentials.client.id": ["i", ""],
    "sasl.oauthbearer.client.credentials.client.secret": ["s", ""],
    "sasl.oauthbearer.scope": ["a b", "", "\u00e4"],
    "sasl.oauthbearer.sub.claim.name": ["sub", ""],
    "sasl.oauthbearer.jwt.retriever.class": ["org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever"],
    "sasl.oauthbearer.assertion.algorithm": ["RS256", "ES256", "HS256", ""],
    "sasl.oauthbearer.assertion.claim.aud": ["a", ""],
    "sasl.oauthbearer.assertion.claim.exp.seconds": ["300", "0", "-1", "x", "99999999999"],
    "sasl.oauthbearer.assertion.claim.iss": ["a"],
    "sasl.oauthbearer.assertion.claim.jti.include": ["true", "false", "x"],
    "sasl.oauthbearer.assertion.claim.nbf.seconds": ["60", "-1", "x"],
    "sasl.oauthbearer.assertion.claim.sub": ["a"],
    "sasl.oauthbearer.assertion.file": ["/no/such/file", _PEM_FILE],
    "sasl.oauthbearer.assertion.private.key.file": ["/no/such/file", _PEM_FILE],
    "sasl.oauthbearer.assertion.private.key.passphrase": ["p", ""],
    "sasl.oauthbearer.assertion.template.file": ["/no/such/file", _PEM_FILE],
}
_TLS = {
    "ssl.truststore.location": [str(_SAMPLES / "trust.jks"), _PEM_FILE, "/no/such/file"],
    "ssl.truststore.password": ["store-pass", "wrong"],
    "ssl.truststore.type": ["JKS", "PEM", "PKCS12"],
    "ssl.truststore.certificates": [CA.pem, _NO_CERTIFICATE, ""],
    "ssl.keystore.location": [str(_SAMPLES / "client.jks"), _PEM_FILE],
    "ssl.keystore.password": ["store-pass", "wrong"],
    "ssl.keystore.type": ["JKS", "PEM", "PKCS12"],
    "ssl.keystore.key": [CLIENT.key_pem, CLIENT.encrypted_pem("p"), "x"],
    "ssl.keystore.certificate.chain": [
        CLIENT.pem,
        CA.pem,
        "-----BEGIN CERTIFICATE----- eA== -----END CERTIFICATE-----",
    ],
    "ssl.key.password": ["p", "store-pass", "wrong", ""],
    "ssl.endpoint.identification.algorithm": ["https", "HTTPS", "none", "", "x"],
    "ssl.cipher.suites": [
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_AES_128_GCM_SHA256",
        "x",
        "A_B",
        "",
        "AES128-SHA,:",
    ],
    "ssl.protocol": ["TLSv1.3", "x"],
    "ssl.engine.factory.class": ["x.Y"],
}


def token(_: Mapping[str, str]) -> tuple[str, float]:
    """Named by files of these tests."""
    return "t", time.time() + 3600


_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_ENDPOINT = {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token"}
_WHOLE_LOGINS: tuple[dict[str, str], ...] = (
    {},
    {"sasl.mechanism": "PLAIN", "sasl.jaas.config": _LOGINS["sasl.jaas.config"][0]},
    {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": _LOGINS["sasl.jaas.config"][0]},
    {"sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "kafka"},
    {"sasl.mechanism": "OAUTHBEARER", "sasl.login.callback.handler.function": f"{__name__}:token"},
    {**_ENDPOINT, "sasl.jaas.config": _LOGINS["sasl.jaas.config"][2]},
    {**_ENDPOINT, "sasl.oauthbearer.jwt.retriever.class": f"{_OAUTH}.JwtBearerJwtRetriever"},
    {
        **_ENDPOINT,
        "sasl.oauthbearer.jwt.retriever.class": f"{_OAUTH}.JwtBearerJwtRetriever",
        "sasl.oauthbearer.assertion.algorithm": "ES256",
        "sasl.oauthbearer.assertion.private.key.file": _PEM_FILE,
    },
)
_WHOLE_STORES: tuple[dict[str, str], ...] = (
    {},
    {"ssl.truststore.location": str(_SAMPLES / "trust.jks"), "ssl.truststore.password": "store-pass"},
    {"ssl.truststore.location": _PEM_FILE, "ssl.truststore.type": "PEM"},
    {"ssl.truststore.certificates": CA.pem, "ssl.truststore.type": "PEM"},
    {"ssl.keystore.location": str(_SAMPLES / "client.jks"), "ssl.keystore.password": "store-pass"},
    {"ssl.keystore.location": _PEM_FILE, "ssl.keystore.type": "PEM"},
    {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": CLIENT.encrypted_pem("p"),
        "ssl.keystore.certificate.chain": CLIENT.pem,
        "ssl.key.password": "p",
    },
)


def _security(protocol: str) -> st.SearchStrategy[dict[str, str]]:
    """What is complete, and then changed in some places."""
    known = {**(_LOGINS if protocol.startswith("SASL") else {}), **(_TLS if protocol.endswith("SSL") else {})}
    lines = [(name, value) for name, values in known.items() for value in values]
    return st.builds(
        lambda login, stores, changed: {
            "security.protocol": protocol,
            **(login if protocol.startswith("SASL") else {}),
            **(stores if protocol.endswith("SSL") else {}),
            **dict(changed),
        },
        st.sampled_from(_WHOLE_LOGINS),
        st.sampled_from(_WHOLE_STORES),
        st.lists(st.sampled_from(lines), max_size=3),
    )


_SECURITY = st.sampled_from(["SSL", "SASL_PLAINTEXT", "SASL_SSL"]).flatmap(_security)
_PREFIXES = st.sampled_from(["A", "B", "A.consumer", "B.producer", "A.admin", "A->B.target.admin"])


def _made(flow: FlowSettings) -> None:
    """Make every client of a flow as the product does, but without an address; raises what that raises."""
    for cluster, extra, role in (
        (flow.source, flow.consumer, "consumer"),
        (flow.target, flow.producer, "producer"),
        (flow.source, flow.source_admin, "admin"),
        (flow.target, flow.target_admin, "admin"),
    ):
        rendered = with_tokens(options(cluster, extra, role))
        del rendered["bootstrap.servers"]
        if role == "consumer":
            Consumer(fetch_options(rendered), logger=QUIET)
        elif role == "producer":
            Producer(record_options(rendered, delivery_timeout(flow.producer)), logger=QUIET)
        else:
            AdminClient(rendered, logger=QUIET)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(_LINES, min_size=1, max_size=4), mode=st.booleans())
def test_no_file_that_is_usable_makes_a_client_fail(
    loaded: Loader, lines: list[tuple[str, str, str]], mode: bool
) -> None:
    text = "".join(f"{prefix}.{name} = {value}\n" for prefix, name, value in lines)
    found = loaded(text + (_EXACTLY_ONCE if mode else ""))
    if not found.report.problems:
        _made(found.settings.flows[0])


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(prefix=_PREFIXES, security=_SECURITY)
def test_no_login_and_no_tls_that_is_usable_makes_a_client_fail(
    loaded: Loader, tmp_path: Path, prefix: str, security: dict[str, str]
) -> None:
    pem = tmp_path / "both.pem"
    pem.write_text(CLIENT.key_pem + CLIENT.pem + CA.pem)
    given_there = {name: str(pem) if value == _PEM_FILE else value for name, value in security.items()}
    found = loaded("".join(f"{prefix}.{name} = {_one_line(value)}\n" for name, value in given_there.items()))
    if not found.report.problems:
        _made(found.settings.flows[0])


def _one_line(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", " ")
