"""What a file means, and every mistake with its line, all at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from srm_spark.config import load_settings
from srm_spark.config.load import load
from srm_spark.core.filter_plugins import CONFIG_PROPERTIES, GROUPS, TOPICS, FilterKey, load_filter
from srm_spark.core.filters import NameFilter
from srm_spark.core.model import Flow
from srm_spark.core.policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from srm_spark.errors import ConfigError
from tests.unit.config.conftest import Loader, problems

SAMPLES = Path(__file__).parent / "samples"
CONF = Path(__file__).parents[3] / "conf"
MIRROR = "org.apache.kafka.connect.mirror."


def test_defaults_are_those_of_mirror_maker_except_ours(loaded: Loader) -> None:
    found = loaded()
    assert problems(found) == []
    assert found.settings.warnings == ()
    (flow,) = found.settings.flows
    assert flow.flow == Flow("A", "B")
    assert flow.topics.include == (".*",)
    assert flow.topics.exclude == (r"mm2.*\.internal", r".*\.replica", "__.*")
    assert (flow.topics.replication_factor, flow.topics.refresh_seconds) == (2, 5.0)
    assert (flow.syncs.enabled, flow.syncs.on_target, flow.syncs.lag_max) == (True, False, 100)
    assert flow.batch.tasks_max is None
    assert (flow.progress_topic, flow.progress_partitions) == ("mm2-offsets.A.internal", 25)
    assert (flow.retry_count, flow.retry_delay_seconds) == (-1, 10.0)
    assert flow.consumer == {"isolation.level": "read_uncommitted", "auto.offset.reset": "earliest"}
    assert flow.producer == {}
    assert [(str(beat.flow), beat.enabled, beat.interval_seconds) for beat in found.settings.heartbeats] == [
        ("A->B", True, 1.0),
        ("B->A", False, 1.0),
    ]


@pytest.mark.parametrize(
    ("line", "is_on"),
    [
        ("B.exactly.once.source.support = enabled", True),
        ("B.exactly.once.source.support = preparing", False),
        ("A.exactly.once.source.support = enabled", False),
        ("A->B.exactly.once.support = required", True),
        ("A->B.exactly.once.support = requested", False),
    ],
)
def test_exactly_once_by_mirror_makers_switch_or_for_one_flow(loaded: Loader, line: str, is_on: bool) -> None:
    found = loaded(line)
    assert problems(found) == []
    (flow,) = found.settings.flows
    assert flow.is_exactly_once is is_on
    assert flow.consumer["isolation.level"] == ("read_committed" if is_on else "read_uncommitted")


@pytest.mark.parametrize(("set_ms", "wanted", "seconds"), [(60_000, 15.0, 15.0), (5_000, 15.0, 5.0)])
def test_who_waits_has_shorter_calls_and_never_longer_ones(
    loaded: Loader, set_ms: int, wanted: float, seconds: float
) -> None:
    (flow,) = loaded(f"admin.timeout.ms = {set_ms}").settings.flows
    hurried = flow.within(wanted)
    assert hurried.admin_timeout_seconds == seconds
    assert replace(hurried, admin_timeout_seconds=set_ms / 1000) == flow


def test_everything_wrong_is_said_at_once_with_its_line(loaded: Loader) -> None:
    text = """clusters = A, B, A, x.y
A.bootstrap.servers = a
A->B.enabled = yes
A->C.enabled = true
B->A.enabled = true
B->A.topics = a(, b,,c
offset.lag.max = -1
replication.factor = 0
topic.filter.class = com.example.MyFilter
replication.policy.class = com.example.MyPolicy
A.security.protocol = TLS
A.consumer.fetch.min.bytes = many
offset-syncs.topic.location = middle
"""
    found = problems(loaded(text, base=""))
    text = "\n".join(found)
    for expected in (
        "srm.properties:1|clusters|got alias A twice",
        "srm.properties:2|A.bootstrap.servers|got 'a'; allowed host:port",
        "srm.properties:1|B.bootstrap.servers|is missing",
        "srm.properties:1|x.y.bootstrap.servers|is missing",
        "srm.properties:3|A->B.enabled|got 'yes'; allowed true, false|did you mean true?",
        "srm.properties:4|A->C.enabled|got unknown alias C; allowed A, B, x.y",
        "srm.properties:6|B->A.topics|got an empty entry",
        "srm.properties:6|B->A.topics|got 'a('",
        "srm.properties:7|offset.lag.max|got '-1'; allowed a whole number from 0",
        "srm.properties:8|replication.factor|got 0",
        "srm.properties:9|topic.filter.class|got com.example.MyFilter",
        "write the rule as regular expressions in `topics` and `topics.exclude`, or topic.filter.class = your_package",
        "srm.properties:10|replication.policy.class|got com.example.MyPolicy: a Java class cannot be loaded here",
        "srm.properties:11|A.security.protocol|got 'TLS'; allowed PLAINTEXT, SSL",
        "srm.properties:13|offset-syncs.topic.location|got 'middle'; allowed source, target",
    ):
        assert expected in text, expected


def test_load_settings_raises_one_error_with_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "x.properties").write_text("clusters = A, B\n")
    with pytest.raises(ConfigError) as raised:
        load_settings([tmp_path / "x.properties"])
    assert len(raised.value.problems) == 3
    assert "x.properties:1: A.bootstrap.servers: is missing" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("clusters = \n", "clusters|got ''; allowed"),
        ("cluster = A, B\n", "clusters|is missing; allowed a comma-separated list of aliases|did you mean cluster?"),
        ("clusters = A\nA.bootstrap.servers = a:1\n", "got one cluster, A; a flow needs two"),
        ("clusters = A, B->C\n", "got alias 'B->C'"),
        ("clusters = A, B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:70000\n", "got 'b:70000'"),
        (
            "clusters = A, B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\n",
            "no flow is enabled|write A->B.enabled",
        ),
    ],
)
def test_files_without_clusters_or_flows(loaded: Loader, text: str, expected: str) -> None:
    assert expected in "\n".join(problems(loaded(text, base="")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A->A.enabled = true\n", "got a flow from a cluster to itself"),
        ("A->Bb.enabled = true\n", "got unknown alias Bb; allowed A, B|did you mean B?"),
        ("A->B = true\n", "got a flow without a property|did you mean A->B.enabled?"),
        ("replication.policy.separator =\n", "srm.properties:5|replication.policy.separator|"),
        ("replication.policy.class = no.such_module:Policy\n", "cannot be imported"),
        ("replication.policy.class = json:JSONDecoder\n", "subclass srm_spark.policy.DefaultReplicationPolicy"),
        ("topics = (?<=a)b{1,3}\n", "srm.properties:5|topics|got"),
        ("A->B.topics = \\\\p{IsGreek}+\n", "srm.properties:5|A->B.topics|got"),
        ("group.filter.class = x.Y\n", "in `groups`"),
        (
            "A.security.protocol = SASL_SSL\nA.sasl.mechanism = PLAIN\n",
            "srm.properties:6|A.sasl.jaas.config|PLAIN needs username in sasl.jaas.config and password in "
            "sasl.jaas.config|like org.apache",
        ),
        ("A.security.protocol = SASL_SSL\nA.sasl.mechanism = AWS_MSK_IAM\n", "got AWS_MSK_IAM; allowed PLAIN"),
        ("B.producer.compression.type = brotli\n", "got 'brotli'; allowed none, gzip"),
        ("A->B.consumer.isolation.level = dirty\n", "got 'dirty'; allowed read_committed"),
        ("sync.group.offsets.enabled = true\nemit.checkpoints.enabled = false\n", "writes no checkpoints"),
        ("dialect = mm3\n", "got 'mm3'; allowed mm2, srm"),
        ("batch.max.bytes = 1\n", "got '1'; allowed a whole number from 1024"),
        ("emit.heartbeats.interval.seconds = 0\n", "allowed a whole number from 1 to 1000000000, or -1 for off"),
    ],
)
def test_each_mistake_is_explained(loaded: Loader, text: str, expected: str) -> None:
    assert expected in "\n".join(problems(loaded(text)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "A.consumer.ssl.truststore.location = /no/such\n",
            "5|A.consumer.ssl.truststore.location|there is no file /no/such",
        ),
        ("A->B.source.consumer.sasl.mechanism = x\n", "|A->B.source.consumer.sasl.mechanism|got X; allowed PLAIN"),
        ("B.producer.sasl.jaas.config = oh no\n", "|B.producer.sasl.jaas.config|cannot be read"),
        (
            "A->B.producer.override.security.protocol = x\n",
            "|A->B.producer.override.security.protocol|got 'x'; allowed",
        ),
        ("B.admin.security.protocol = x\n", "|B.admin.security.protocol|got 'x'; allowed PLAINTEXT, SSL"),
        ("A.admin.request.timeout.ms = soon\n", "|A.admin.request.timeout.ms|got 'soon'; allowed a whole number"),
        ("A.producer.acks = 2\n", "|A.producer.acks|got '2'; allowed all, -1, 0, 1"),
        (
            "A->B.target.admin.bootstrap.servers = x\n",
            "|A->B.target.admin.bootstrap.servers|got 'x'; allowed host:port",
        ),
    ],
)
def test_mistakes_of_one_client_are_explained(loaded: Loader, text: str, expected: str) -> None:
    login = (
        "security.protocol = SASL_SSL\nsasl.mechanism = PLAIN\nsasl.jaas.config = x.y required username=u password=p;"
    )
    assert problems(loaded(login)) == []
    (problem,) = problems(loaded(text + login))
    assert expected in problem


def test_an_alias_with_the_separator_is_refused(loaded: Loader) -> None:
    base = (
        "clusters = us.east, B\nus.east.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nus.east->B.enabled = true\n"
    )
    assert "contains the separator '.'" in "\n".join(problems(loaded(base=base)))
    assert problems(loaded("replication.policy.separator = _\n", base=base)) == []


FAN_IN = """clusters = A, B, C
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
C.bootstrap.servers = c:1
A->C.enabled = true
B->C.enabled = true
"""
IDENTITY = f"replication.policy.class = {MIRROR}IdentityReplicationPolicy\n"


@pytest.mark.parametrize(
    ("topics_of_a", "topics_of_b", "is_told_as"),
    [
        ("orders", "orders", "problem"),
        ("x.*, a\\\\.x", "a\\\\.x, x1", "problem"),
        (".*", ".*", "warning"),
        ("orders", "o.*", "warning"),
        ("a\\\\..*", "[a-c]\\\\.x", "warning"),
        ("orders", "payments", ""),
        ("a-.*", "b-.*", ""),
    ],
)
def test_two_flows_into_one_topic_are_found(
    loaded: Loader, topics_of_a: str, topics_of_b: str, is_told_as: str
) -> None:
    text = f"A->C.topics = {topics_of_a}\nB->C.topics = {topics_of_b}\n"
    found = loaded(text + IDENTITY, base=FAN_IN)
    assert ("that both write to" in "\n".join(problems(found))) is (is_told_as == "problem")
    told = any("it is held where they meet" in warning for warning in found.settings.warnings)
    assert told is (is_told_as == "warning")
    mixed = loaded(text + IDENTITY + "foreign.writer.policy = resume\n", base=FAN_IN)
    assert problems(mixed) == []
    assert any("may mix their records" in warning for warning in mixed.settings.warnings) is bool(is_told_as)
    apart = loaded(text, base=FAN_IN)
    assert (problems(apart), apart.settings.warnings) == ([], ())


def test_identity_in_a_ring_is_found_unless_the_topics_differ(loaded: Loader) -> None:
    both = "B->A.enabled = true\n" + IDENTITY
    assert "got a ring A->B->A that keeps names" in "\n".join(problems(loaded(both)))
    assert problems(loaded(both + "A->B.topics = a-.*\nB->A.topics = b-.*\n")) == []
    assert problems(loaded("B->A.enabled = true\n")) == []


def test_a_ring_that_keeps_names_is_fine_where_all_of_its_flows_know_copies(loaded: Loader) -> None:
    key = "provenance.header.enabled"
    both = "B->A.enabled = true\n" + IDENTITY
    (told,) = problems(loaded(f"{both}A->B.{key} = true\n"))
    assert "got a ring B->A->B that keeps names" in told
    assert f"set {key} = true for all of its flows" in told
    found = loaded(f"{both}{key} = true\n")
    assert problems(found) == []
    assert all(flow.stamp is not None for flow in found.settings.flows)
    assert all(flow.stamp is None for flow in loaded("B->A.enabled = true\n").settings.flows)
    third = "clusters = A, B, C\nC.bootstrap.servers = c:9092\nB->C.enabled = true\nC->A.enabled = true\n"
    assert "got a ring A->B->C->A" in "\n".join(problems(loaded(third + IDENTITY)))
    assert problems(loaded(third + IDENTITY + f"{key} = true\n")) == []
    (told,) = problems(loaded(third + IDENTITY + f"{key} = true\nC->A.{key} = false\n"))
    assert "got a ring C->A->B->C" in told


def test_quotas_that_would_go_round_are_refused(loaded: Loader) -> None:
    key = "sync.user.quotas.enabled"
    both = f"B->A.enabled = true\n{key} = true\n"
    (told,) = problems(loaded(both))
    assert f"|{key}|got true for A->B and B->A: a quota that is deleted would come back from its copy" in told
    assert f"for instance B->A.{key} = false" in told
    assert problems(loaded(f"{both}B->A.{key} = false\n")) == []
    assert problems(loaded(f"{both}A->B.sync.user.quotas.interval.seconds = -1\n")) == []
    third = f"clusters = A, B, C\nC.bootstrap.servers = c:9092\nB->C.enabled = true\n{key} = true\n"
    assert problems(loaded(third)) == []
    (told,) = problems(loaded(f"{third}C->A.enabled = true\n"))
    assert "got true for A->B and B->C and C->A" in told


def test_flows_can_be_picked(loaded: Loader) -> None:
    two = "B->A.enabled = true\n"
    assert [str(flow.flow) for flow in loaded(two, flows=["B->A"]).settings.flows] == ["B->A"]
    assert "|is not an enabled flow; allowed A->B, B->A" in "\n".join(problems(loaded(two, flows=["A->C"])))


def test_one_mistake_does_not_hide_another(loaded: Loader) -> None:
    text = "A.security.protocol = SASL\nA.sasl.mechanism = PLANE\nB->A.enabled = yes\nB->A.topics = (open\n"
    found = "\n".join(problems(loaded(text)))
    for expected in ("got 'SASL'; allowed", "got PLANE; allowed", "B->A.enabled|got 'yes'", "B->A.topics|got"):
        assert expected in found


def test_an_arrow_that_the_shell_took_is_named(loaded: Loader) -> None:
    (problem,) = loaded("", flows=["A-"]).report.problems
    assert problem.hint == "quote it: the shell took the >"


def test_two_names_of_one_cluster_are_named(loaded: Loader) -> None:
    found = loaded("B.bootstrap.servers = other:1,a:1\n")
    told = "A has the same servers: A->B would copy a cluster into itself"
    assert any(told in warning for warning in found.settings.warnings)


def test_only_flows_into_the_drivers_targets_run(loaded: Loader) -> None:
    text = "B->A.enabled = true\nstreams.replication.manager.driver.target.cluster = A\n"
    assert [str(flow.flow) for flow in loaded(text).settings.flows] == ["B->A"]


def test_heartbeats_can_be_switched_off_for_all_or_one(loaded: Loader) -> None:
    assert loaded("emit.heartbeats.enabled = false\n").settings.heartbeats == ()
    one = loaded("B->A.emit.heartbeats.enabled = false\nemit.heartbeats.interval.seconds = 7\n").settings.heartbeats
    assert [(str(beat.flow), beat.interval_seconds) for beat in one] == [("A->B", 7.0)]


class OnlyShort(NameFilter):
    """A filter of the user's own."""

    def matches(self, name: str) -> bool:
        """Takes names of at most six letters."""
        return super().matches(name) and len(name) <= 6


@pytest.mark.parametrize("filter_key", [TOPICS, GROUPS, CONFIG_PROPERTIES], ids=lambda each: each.key)
def test_filters_of_ones_own(loaded: Loader, filter_key: FilterKey) -> None:
    path = f"{__name__}:OnlyShort"
    found = loaded(f"{filter_key.key} = {path}\n")
    assert problems(found) == []
    (flow,) = found.settings.flows
    named = (flow.topics.filter_class, flow.checkpoints.filter_class, flow.topics.config_filter_class)
    assert [name for name in named if name] == [path]
    own = load_filter(filter_key, path, (".*",), ())
    assert (own.matches("orders"), own.matches("payments")) == (True, False)
    assert problems(loaded(f"{filter_key.key} = {MIRROR}{filter_key.java_default}\n")) == []
    for wrong, expected in (
        (f"{__name__}:Path", "is no subclass of srm_spark.filters.NameFilter"),
        ("no.such:X", "cannot be imported"),
        ("com.example.F", "a Java class cannot be loaded here"),
    ):
        text = "\n".join(problems(loaded(f"{filter_key.key} = {wrong}\n")))
        assert f"{filter_key.key}|got {wrong}: {expected}" in text


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ("replication.policy.class", "your_package.module:YourPolicy, a subclass of srm_spark.policy.Default"),
        ("topic.filter.class", "in `topics` and `topics.exclude`, or topic.filter.class = your_package.module:YourF"),
        ("group.filter.class", "in `groups` and `groups.exclude`, or group.filter.class = your_package.module:YourF"),
        ("config.property.filter.class", "in `config.properties.exclude`, or config.property.filter.class = your_pac"),
        ("forwarding.admin.class", "let the user of srm-spark create topics"),
        ("config.resolver.class", "write package.module:Class, with resolve(provider, path, key)"),
    ],
)
def test_the_message_about_a_java_class_says_what_to_write_instead(loaded: Loader, key: str, remedy: str) -> None:
    (problem,) = problems(loaded(f"{key} = com.example.Mine\n"))
    assert problem.startswith(f"srm.properties:5|{key}|got com.example.Mine: a Java class cannot be loaded here")
    assert remedy in problem


def test_misplaced_keys_are_named_with_the_place_that_works(loaded: Loader) -> None:
    text = """use.defaults.from = source
consumer.fetch.min.bytes = 1
A.request.timeout.ms = 1
A.topics = x
A->B.producer.linger.ms = 1
A->B.offset.storage.topic = x
offset.flush.interval.ms = 1
source.cluster.bootstrap.servers = x:1
tpoics = x
A.consumer.fetch.min.byte = 1
workers.x = 1
dialect = mm2
A->B.source.cluster.request.timeout.ms = 1
"""
    found = "\n".join(loaded(text).settings.warnings)
    for expected in (
        "use.defaults.from: has no effect here (top level); write `A->B.use.defaults.from`",
        "consumer.fetch.min.bytes: has no effect at the top level; write `A.consumer.fetch.min.bytes`",
        "A.request.timeout.ms: has no effect here; write `A.consumer.request.timeout.ms`",
        "A.topics: has no effect here (cluster); write `topics` or `A->B.topics`",
        "A->B.producer.linger.ms: reaches only the offset-syncs producer",
        "A->B.offset.storage.topic: has no effect here (replication); write `offset.storage.topic` or `B.",
        "offset.flush.interval.ms: ignored: srm-spark runs no Connect workers",
        "source.cluster.bootstrap.servers: has no effect at the top level; write `A.bootstrap.servers`",
        "tpoics: unknown key (top level), ignored — did you mean topics?",
        "A.consumer.fetch.min.byte: is not a property of a Kafka client, ignored — did you mean fetch.min.bytes?",
        "workers.x: ignored: MirrorMaker 2 has no level `workers.`",
        "only bootstrap and security keys count behind `source.cluster.`",
    ):
        assert expected in found, expected


def test_strict_makes_unknown_keys_problems(loaded: Loader) -> None:
    assert problems(loaded("tpoics = x\n", strict=True)) == [
        "srm.properties:5|tpoics|unknown key (top level)|did you mean topics?"
    ]


@pytest.mark.parametrize("alias", ["cloudera", "srm", "workers", "connectors", "mm"])
def test_a_cluster_may_be_called_as_what_srm_begins_its_keys_with(alias: str, tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    lines = f"clusters = {alias}, B", f"{alias}.bootstrap.servers = a:1", "B.bootstrap.servers = b:1"
    path.write_text("\n".join((*lines, f"{alias}->B.enabled = true", f"{alias}->B.topics = t", "")))
    assert load([path]).settings.dialect == "mm2"
    with path.open("a") as file:
        file.write("mm.rest.protocol = http\n")
    assert load([path]).settings.dialect == "srm"


@pytest.mark.parametrize("spelling", [str.upper, str.lower, str.title])
def test_however_a_value_of_a_client_is_spelled_it_is_the_one_that_kafka_knows(
    loaded: Loader, spelling: Callable[[str], str]
) -> None:
    """Who compares it later, Spark's client or ours, must not take it for another one."""
    words = {
        "A.consumer.isolation.level": "read_committed",
        "B.producer.compression.type": "gzip",
        "A.security.protocol": "SASL_PLAINTEXT",
        "A.sasl.mechanism": "SCRAM-SHA-512",
        "A.sasl.jaas.config": None,
    }
    login = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p";'
    found = loaded("\n".join(f"{key} = {login if word is None else spelling(word)}" for key, word in words.items()))
    assert problems(found) == []
    (flow,) = found.settings.flows
    assert flow.consumer["isolation.level"] == "read_committed"
    assert flow.reads_committed
    assert flow.producer["compression.type"] == "gzip"
    assert flow.source.properties["sasl.mechanism"] == "SCRAM-SHA-512"
    assert flow.source.properties["security.protocol"] == "SASL_PLAINTEXT"


def test_srms_levels_count_in_its_dialect() -> None:
    found = load([SAMPLES / "srm-levels.properties"])
    assert problems(found) == []
    assert found.settings.dialect == "srm"
    (flow,) = found.settings.flows
    assert flow.progress_partitions == 9
    assert flow.producer == {"buffer.memory": "33554432"}
    assert (flow.consumer["max.poll.records"], flow.consumer["fetch.min.bytes"]) == ("500", "2")
    assert flow.syncs.lag_max == 5
    assert flow.topics.config_exclude == ("retention.ms",)
    assert {beat.interval_seconds for beat in found.settings.heartbeats} == {5.0}


def test_srm_starts_with_nothing_and_says_so(loaded: Loader) -> None:
    found = loaded("mm.rest.protocol = http\n", end="")
    assert found.settings.flows[0].topics.include == ()
    assert "no topic of A->B flows before its list has entries: SRM starts with an empty list" in "\n".join(
        found.settings.warnings
    )


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.properties")), ids=lambda path: path.name)
def test_files_of_others_run_or_say_what_they_lose(path: Path) -> None:
    found = load([path])
    assert problems(found) == []
    assert found.settings.flows
    assert all(path.name in warning for warning in found.settings.warnings)


def test_a_managed_cloud_gets_another_login_than_the_source() -> None:
    (flow,) = load([SAMPLES / "mm2-managed-cloud.properties"]).settings.flows
    assert flow.source.properties == {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""}
    assert flow.target.properties["sasl.mechanism"] == "SCRAM-SHA-512"


def test_the_demo_runs_without_a_warning() -> None:
    settings = load_settings([CONF / "demo.properties"], {"primary.bootstrap.servers": "localhost:1"})
    assert settings.warnings == ()
    assert settings.clusters["primary"].bootstrap_servers == "localhost:1"
    both = load_settings([CONF / "demo.properties"], {"secondary->primary.enabled": "true"})
    assert [(str(flow.flow), flow.topics.include) for flow in both.flows][1:] == [("secondary->primary", ("returns",))]
    assert both.warnings == ()


def test_the_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EAST_JAAS", 'x.ScramLoginModule required username="u" password="p";')
    settings = load_settings([CONF / "example.yaml"])
    assert [str(flow.flow) for flow in settings.flows] == ["east->west", "west->east"]
    assert settings.flows[0].topics.include == ("orders", r"payments\..*")
    assert settings.warnings == ()


def test_a_signed_assertion_is_for_targets_only(loaded: Loader) -> None:
    retriever = "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever"

    def login(alias: str) -> str:
        keys = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
            "sasl.oauthbearer.jwt.retriever.class": retriever,
            "sasl.oauthbearer.assertion.claim.iss": "me",
            "sasl.oauthbearer.assertion.private.key.file": "/etc/srm/key.pem",
        }
        return "".join(f"{alias}.{name} = {value}\n" for name, value in keys.items())

    assert problems(loaded(login("B"))) == []
    (problem,) = problems(loaded(login("A")))
    assert "|A.sasl.oauthbearer.jwt.retriever.class|got a signed assertion for A" in problem
    assert "client credentials" in problem


def test_who_does_not_say_which_topics_flow_is_asked_whose_defaults_he_means(loaded: Loader) -> None:
    (asked,) = problems(loaded(end=""))
    assert asked.startswith("srm.properties:4|A->B.topics|nobody says which topics of A flow: MirrorMaker 2 would take")
    assert asked.endswith("|write A->B.topics, or dialect = mm2 or srm")
    for line in ("dialect = mm2", "dialect = srm", "A->B.topics = .*", "topics = orders", "mm.rest.protocol = http"):
        assert problems(loaded(line, end="")) == []


@pytest.mark.parametrize(
    ("class_name", "kind"),
    [
        ("DefaultReplicationPolicy", DefaultReplicationPolicy),
        ("IdentityReplicationPolicy", IdentityReplicationPolicy),
    ],
)
def test_srms_switch_lets_topics_flow_that_only_look_internal(loaded: Loader, class_name: str, kind: type) -> None:
    key = "srm.internal.topic.exclude.enable"
    text = f"replication.policy.class = {MIRROR}{class_name}\nA->B.topics = .*\nA->B.topics.exclude =\ndialect = srm\n"
    for line, flows in (
        ("", False),
        (f"{key} = true\n", False),
        (f"{key} = false\n", True),
        (f"A->B.{key}=false", True),
    ):
        found = loaded(f"{text}{line}")
        assert problems(found) == []
        assert not any(key in told for told in found.settings.warnings)
        (flow,) = found.settings.flows
        assert type(flow.policy()) is kind
        assert flow.policy().is_internal_topic("__alerts") is not flows
        assert flow.policy().is_internal_topic("__transaction_state")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("external_kafka_accounts = prod, dr", "write what they hold behind their alias, `A.bootstrap.servers`"),
        ("offset.flush.timeout.ms = 1", "srm-spark runs no Connect workers"),
        ("B.offset.flush.timeout.ms = 1", "srm-spark runs no Connect workers"),
        ("A->B.worker.offset.flush.timeout.ms = 1", "srm-spark runs no Connect workers"),
    ],
)
def test_what_has_no_meaning_here_is_told_with_what_to_do_instead(loaded: Loader, line: str, told: str) -> None:
    found = loaded(f"dialect = srm\nA->B.topics = t\n{line}\n")
    assert problems(found) == []
    (warning,) = [text for text in found.settings.warnings if "srm.properties:7: " in text]
    assert f"{line.partition(' ')[0]}: ignored: " in warning
    assert told in warning


def test_a_secret_that_only_cloudera_manager_knows_is_a_problem(loaded: Loader) -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="##JAAS_SECRET_1##";'
    text = f"A.security.protocol = SASL_SSL\nA.sasl.mechanism = PLAIN\nA.sasl.jaas.config = {jaas}\n"
    found = problems(loaded(text))
    assert any("srm.properties:7|A.sasl.jaas.config|has ##JAAS_SECRET_1## in it" in problem for problem in found)


def test_the_heartbeats_topic_is_what_the_policy_says(
    loaded: Loader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pulse_policies.py").write_text(
        "from srm_spark.core.policy import DefaultReplicationPolicy\n"
        "class Pulse(DefaultReplicationPolicy):\n"
        "    def heartbeats_topic(self):\n"
        "        return 'pulse'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    beats = loaded("A->B.replication.policy.class = pulse_policies:Pulse\n").settings.heartbeats
    assert {str(beat.flow): beat.topic for beat in beats} == {"A->B": "pulse", "B->A": "heartbeats"}
