"""What librdkafka itself would refuse is a problem of the file, and what srm-spark overrules is told."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from srm_spark.config.keys_client import CLIENT_KEYS
from srm_spark.config.render import librdkafka
from srm_spark.kafka.trial import refusal
from tests.unit.config.conftest import Loader, problems

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


@pytest.mark.parametrize(
    "line",
    [
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


_NUMBERS = st.integers(-1, 2**31).map(str)
_WORDS = st.sampled_from(["", "all", "none", "zstd", "true", "false", "use_all_dns_ips", "0", "1", "x"])
_KEYS = st.sampled_from(sorted(name for name in CLIENT_KEYS if not name.startswith(("ssl.", "sasl.", "security."))))
_LINES = st.tuples(st.sampled_from(["A.consumer", "B.producer", "A.admin", "B.admin"]), _KEYS, _NUMBERS | _WORDS)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(_LINES, min_size=1, max_size=4), mode=st.booleans())
def test_no_file_that_is_usable_makes_a_client_fail(
    loaded: Loader, lines: list[tuple[str, str, str]], mode: bool
) -> None:
    text = "".join(f"{prefix}.{name} = {value}\n" for prefix, name, value in lines)
    found = loaded(text + ("A->B.exactly.once.support = required\n" if mode else ""))
    if found.report.problems:
        return
    (flow,) = found.settings.flows
    for client, cluster, extra in (
        ("consumer", flow.source, flow.consumer),
        ("producer", flow.target, flow.producer),
        ("admin", flow.source, flow.source_admin),
        ("admin", flow.target, flow.target_admin),
    ):
        assert librdkafka(cluster, extra)
        assert refusal(client, flow, cluster, extra) is None
