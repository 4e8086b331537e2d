"""`srm-control topics`, `groups` and `reverse-checkpointed-topics`, on clusters in memory."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from srm_spark.cli.clients import ClientOptions
from srm_spark.cli.control import main
from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Committed, ControlRecord
from srm_spark.core.lists import NO_LISTS, Act, Change, ListKind, act_key, encode_act
from srm_spark.core.model import TopicPartition
from srm_spark.core.tail import TailRecord
from srm_spark.errors import ProtocolUnavailable, SourceUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Connect
from srm_spark.flow.list_effects import Effect, Size, effect_of, matches_of
from srm_spark.flow.listing import ListPlace
from srm_spark.flow.topics.list_writer import ListWriter
from tests.memory_cluster import MemoryCluster
from tests.unit.memory_run import World

FILE = """clusters = A, B
A.bootstrap.servers = nowhere:1
B.bootstrap.servers = nowhere:2
A->B.enabled = true
control.topic.replication.factor = 1
"""
SRM = FILE + "dialect = srm\n"
MM2 = FILE + "A->B.topics = orders, pay.*\nA->B.topics.exclude = pay-secret\nA->B.groups = g.*\ndialect = mm2\n"
TOPIC = "mm2-control.A.internal"
PAIR = ("--source", "A", "--target", "B")


class Tool:
    """The command, and the target that it finds."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.target = MemoryCluster("B", TargetUnavailable)
        self.settings: list[FlowSettings] = []
        self.path = folder / "srm.properties"
        self.path.write_text(SRM)
        self.effect = Effect()
        self.matches: dict[str, tuple[str, ...]] | Exception = {}
        monkeypatch.setattr("srm_spark.cli.lists.ListPlace", partial(ListPlace, target=self._target_of))
        monkeypatch.setattr("srm_spark.flow.listing.effect_of", lambda *_: self.effect)
        monkeypatch.setattr("srm_spark.flow.listing.matches_of", self._matches_of)

    def _target_of(self, settings: FlowSettings, _: str) -> MemoryCluster:
        self.settings.append(settings)
        return self.target

    def _matches_of(
        self, _: FlowSettings, __: ListKind, entries: tuple[str, ...], ___: Connect
    ) -> dict[str, tuple[str, ...]]:
        if isinstance(self.matches, Exception):
            raise self.matches
        return {entry: self.matches.get(entry, ()) for entry in entries}

    def bare(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, arguments)

    def __call__(self, *arguments: str, word: str = "topics") -> Result:
        return self.bare("--config", str(self.path), word, *PAIR, *arguments)

    def lists(self, word: str = "topics") -> list[str]:
        return self("--list", word=word).stdout.splitlines()


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    return Tool(tmp_path, monkeypatch)


def test_the_words_are_srm_s(tool: Tool) -> None:
    assert tool.lists() == ["Current whitelist:", "Current blacklist:", "Done."]
    assert TOPIC not in tool.target.held, "looking makes no topic"
    assert tool("--add", "global_iot,pay.*").stdout == "Done.\n"
    assert tool("--add-blacklist", "pay-secret").stdout == "Done.\n"
    whole = ["Current whitelist:", "global_iot", "pay.*", "Current blacklist:", "pay-secret", "Done."]
    assert tool.lists() == whole
    answer = tool("--remove", "global_iot", "--remove-blacklist", "pay-secret")
    assert (answer.exit_code, answer.stdout) == (0, "Done.\n")
    assert tool.lists() == ["Current whitelist:", "pay.*", "Current blacklist:", "Done."]
    assert len(tool.target.log(TopicPartition(TOPIC, 0)).records) == 3, "one record for each command"


@pytest.mark.parametrize("word", ["groups", "reverse-checkpointed-topics"])
def test_each_kind_has_lists_of_its_own(tool: Tool, word: str) -> None:
    assert tool("--add-allowlist", "x", "--add-denylist", "y", word=word).exit_code == 0
    assert tool.lists(word) == ["Current whitelist:", "x", "Current blacklist:", "y", "Done."]
    assert tool("--remove-allowlist", "x", "--remove-denylist", "y", word=word).exit_code == 0
    assert tool.lists(word) == tool.lists() == ["Current whitelist:", "Current blacklist:", "Done."]


def test_a_host_without_a_file_names_the_target(tool: Tool) -> None:
    answer = tool.bare("--bootstrap-server", "h:9092", "topics", *PAIR, "--add", "t", "--reason", "the shop moves")
    assert (answer.exit_code, answer.stdout) == (0, "Done.\n")
    assert tool.settings[-1].target.bootstrap_servers == "h:9092"
    answer = tool.bare(
        "--props", "bootstrap.servers=k:1", "--props", "client.id=me", "topics", "--source", "A", "--list"
    )
    assert answer.stdout.splitlines() == ["Current whitelist:", "t", "Current blacklist:", "Done."]
    assert tool.settings[-1].target.bootstrap_servers == "k:1"
    answer = tool.bare("topics", "--bootstrap", "h:1", *PAIR, "--consumer-props", "security.protocol=SSL", "--list")
    assert answer.exit_code == 0
    assert tool.settings[-1].target.properties["security.protocol"] == "SSL"
    answer = tool.bare("--boot", "h:1", "--props", "request.timeout.ms=7000", "topics", *PAIR, "--list")
    assert (answer.exit_code, tool.settings[0].target_admin) == (0, {})
    assert tool.settings[-1].target.properties["request.timeout.ms"] == "7000", "what reads the lists"
    assert tool.settings[-2].target_admin["request.timeout.ms"] == "7000"
    told = tool.bare("--bootstrap-servers", "h:1", "topics", *PAIR, "--remove", "t", "--dry-run")
    assert told.output.splitlines() == ["would change: -t", "what would begin and stop is not known without --config"]


def test_lists_of_a_flow_that_is_not_enabled_are_prepared_and_it_is_said(tool: Tool) -> None:
    tool.path.write_text(SRM.replace("A->B.enabled = true", "A->B.enabled = false") + "B->A.enabled = true\n")
    said = "A->B is not enabled in these files: its lists count once it is"
    for result in (tool("--add", "t"), tool("--add", "u", "--dry-run")):
        assert (result.exit_code, said in result.stderr) == (0, True)
    assert "t" in tool.lists()
    unknown = tool.bare("--config", str(tool.path), "topics", "--source", "A", "--target", "C", "--list")
    assert (unknown.exit_code, "A->C is not an enabled flow of these files; enabled: B->A" in unknown.output) == (
        2,
        True,
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("topics", *PAIR, "--list"), "write --config FILE, or --bootstrap-servers H:P of the target"),
        (("--boot", "h:1", "topics", "--list"), "write --source ALIAS"),
        (("--boot", "h:1", "topics", *PAIR), "nothing to do: write --add"),
        (("--boot", "h:1", "topics", *PAIR, "--list", "--add", "t"), "several of these: write --add"),
        (("--boot", "h:1", "topics", *PAIR, "--list", "--dry-run"), "--dry-run goes with a change"),
        (("--boot", "h:1", "topics", *PAIR, "--list", "--reason", "x"), "--reason goes with a change"),
        (("--boot", "h:1", "topics", *PAIR, "--add", "t", "-o", "wide"), "-o wide goes with --list only"),
        (("--boot", "h:1", "topics", *PAIR, "--rem", "t"), "--rem may be --remove, --remove-allowlist, --remove-b"),
        (("--boot", "h:1", "topics", *PAIR, "--frob", "t"), "No such option '--frob'"),
        (("--boot", "h:1", "topics", *PAIR, "--props", "x", "--list"), "--props x: write K=V"),
        (
            ("--boot", "h:1", "topics", *PAIR, "--props", "sasl.password:s3cret", "--list"),
            "--props sasl.password: write",
        ),
        (("--boot", "h:1", "topics", *PAIR, "--props", "sasl.pasword: a=s3cret", "--list"), "--props sasl.pasword: no"),
        (
            ("--boot", "h:1", "topics", *PAIR, "--producer-props", "ackz=1", "--list"),
            "--producer-props ackz: no property of a Kafka client — did you mean acks?",
        ),
        (("--boot", "h:1", "losses"), "losses does not take --bootstrap-servers"),
        (("--boot", "h:1", "offsets", "list"), "offsets list does not take --bootstrap-servers"),
        (("groups", "--list", "status"), "write options behind status, or lists without it"),
        (("groups",), "nothing to do"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_refused(tool: Tool, arguments: tuple[str, ...], said: str) -> None:
    answer = tool.bare(*arguments)
    assert answer.exit_code == 2
    assert said in answer.output.replace("\n", " ")


@pytest.mark.parametrize("arguments", [("export", *PAIR), ("--export", *PAIR), ()])
def test_what_one_command_of_offsets_takes_may_stand_in_front(tool: Tool, arguments: tuple[str, ...]) -> None:
    answer = tool.bare("--boot", "h:1", "offsets", *arguments, "--help")
    assert (answer.exit_code, answer.output.startswith("Usage: ")) == (0, True)


def test_a_pattern_that_would_stop_drivers_is_refused(tool: Tool, tmp_path: Path) -> None:
    slow = [r"(a+)+b", r"(\w+-?)*x", r"(foo-.*)*bar", "([^x]+)+x", "([^a-z]+)+x"]
    for entry in slow:
        answer = tool("--add", entry)
        assert (answer.exit_code, f"{entry}: one match with a long name takes for ever" in answer.output) == (2, True)
    path = tmp_path / "lists.json"
    path.write_text(json.dumps({**json.loads(tool("--export").stdout), "deny": slow[:1]}))
    assert tool("--import", str(path)).exit_code == 2
    honest = ["(a+b)+c", r"(?:[a-z]+\.)+x", ".*-orders-.*", "(a|b)*", "a.b"]
    assert tool("--add", ",".join(honest)).exit_code == 0
    assert tool.lists()[1:-2] == honest


def test_no_password_of_a_command_line_shows(monkeypatch: pytest.MonkeyPatch, tool: Tool) -> None:
    props = ["sasl.password=PASSWORD"]
    assert "PASSWORD" not in repr(ClientOptions("b:1", props, props, props))
    shown: list[str] = []
    monkeypatch.setattr("srm_spark.cli.lists.steer", lambda _, asked: shown.append(repr(asked)))
    options = [f"--{name}={props[0]}" for name in ("props", "producer-props", "consumer-props")]
    tool("--list", "-D", "A.sasl.password=PASSWORD", *options)
    assert len(shown) == 1
    assert "PASSWORD" not in shown[0]


def test_what_is_wrong_with_entries_is_told_at_once_and_nothing_is_written(tool: Tool) -> None:
    answer = tool("--add", "t,(,u", "--remove", "t", "--add-blacklist", "x,[", "--remove-blacklist", "a,,b")
    assert answer.exit_code == 2
    for said in (
        "--add, entry 2: pattern '(': an opening ( is never closed",
        "--add-blacklist, entry 2: pattern '[': an opening [ is never closed",
        "--remove-blacklist: pattern 'a,,b': an empty entry in the list",
        "t: both --add and --remove name it",
    ):
        assert said in answer.output
    assert TOPIC not in tool.target.held
    assert "characters, 10000 are allowed" in tool("--add", "t" * 10_001).output
    assert "--add: an empty list" in tool("--add", "").output


def test_what_the_file_says_already_is_told_and_what_stands_there_alone_is_declined(tool: Tool) -> None:
    tool.path.write_text(MM2)
    place = f"{tool.path}:6: A->B.topics"
    answer = tool("--add", "orders,pay-1,pay-secret,new")
    assert answer.exit_code == 0
    assert answer.stderr.splitlines() == [
        f"note: orders: the file takes it already, by orders ({place})",
        f"note: pay-1: the file takes it already, by pay.* ({place})",
        "note: pay-secret does not flow all the same: the file leaves out pay-secret "
        f"({tool.path}:7: A->B.topics.exclude)",
    ]
    answer = tool("--remove", "pay.*,new,old,pay-7,orders", "--remove-blacklist", "pay-secret,nothing")
    assert (answer.exit_code, answer.stdout) == (3, "")
    assert answer.stderr.splitlines() == [
        f"note: orders flows all the same: the file has orders ({place}); --add-blacklist orders leaves it out",
        "not done: pay.* stands in the file and not on the allow list: --add-blacklist pay.* leaves it out, or change "
        f"the file ({place})",
        "not done: old is not on the allow list",
        f"not done: pay-7 is not on the allow list; it flows: the file has pay.* ({place}); --add-blacklist pay-7 "
        "leaves it out",
        "not done: pay-secret stands in the file and not on the deny list: change the file "
        f"({tool.path}:7: A->B.topics.exclude)",
        "not done: nothing is not on the deny list",
    ]
    assert tool.lists()[1:3] == ["pay-1", "pay-secret"]


def test_what_is_so_already_changes_nothing(tool: Tool) -> None:
    tool("--add", "t", "--add-blacklist", "u")
    answer = tool("--add", "t", "--add-blacklist", "u")
    assert (answer.exit_code, answer.stdout) == (0, "Done.\n")
    assert answer.stderr.splitlines() == [
        "note: t is on the allow list already",
        "note: u is on the deny list already",
        "nothing was changed",
    ]
    answer = tool("--remove-blacklist", "v", word="groups")
    assert (answer.exit_code, "not done: v is not on the deny list" in answer.stderr) == (3, True)
    assert "note: u does not flow all the same: the deny list has u" in tool("--add", "u").stderr
    assert len(tool.target.log(TopicPartition(TOPIC, 0)).records) == 2


def test_topics_that_go_back_have_an_open_list(tool: Tool) -> None:
    answer = tool("--remove", "orders", word="reverse-checkpointed-topics")
    assert (answer.exit_code, answer.stderr.splitlines()[0]) == (
        3,
        "not done: orders is not on the allow list; it goes back: the allow list is empty, so that all are taken; "
        "--add-blacklist orders leaves it out",
    )
    tool("--add", "orders", word="reverse-checkpointed-topics")
    answer = tool("--remove", "orders", word="reverse-checkpointed-topics")
    assert "note: orders goes back all the same: the allow list is empty" in answer.stderr
    tool.path.write_text(SRM + "cloudera.reverse.checkpointing.enabled = false\n")
    said = "note: without effect while cloudera.reverse.checkpointing.enabled of A->B is false"
    assert said in tool("--add", "orders", word="reverse-checkpointed-topics").stderr


def test_flows_both_ways_that_keep_names_are_told(tool: Tool) -> None:
    both = SRM + "B->A.enabled = true\nreplication.policy.class = IdentityReplicationPolicy\n"
    tool.path.write_text(both)
    assert "note: topics keep their names, and B->A runs as well" in tool("--add", "t").stderr
    assert tool("--remove", "t").stderr == ""
    tool.path.write_text(both + "provenance.header.enabled = true\n")
    assert tool("--add", "t").stderr == ""
    tool.path.write_text(SRM + "B->A.enabled = true\n")
    assert tool("--add", "u").stderr == ""


def test_history_says_who_why_and_what(tool: Tool) -> None:
    assert "nobody has changed the lists of topics of A->B" in tool("--history").stderr
    tool("--add", "t,u", "--reason", "the shop moves")
    tool("--add", "g", word="groups")
    tool("--remove", "t", "--add-blacklist", "v")
    first, second = tool("--history").stdout.splitlines()
    assert first.endswith(" +t,u (the shop moves)")
    assert second.endswith(" -t deny +v")
    assert "@" in first.split()[1]
    document = json.loads(tool("--history", "-o", "json").stdout)
    assert [(each["add"], each["remove"], each["why"]) for each in document] == [
        (["t", "u"], [], "the shop moves"),
        ([], ["t"], ""),
    ]
    assert document[0]["at"][:2] == "20"


def test_programs_get_the_lists_with_what_each_entry_matches(tool: Tool) -> None:
    tool("--add", "t.*", "--add-blacklist", "t9", "--reason", "why")
    tool.matches = {"t.*": ("t1", "t9"), "t9": ("t9",)}
    document = json.loads(tool("--list", "-o", "json").stdout)
    (entry,) = document["allow"]
    assert (entry["entry"], entry["matches"], entry["why"]) == ("t.*", ["t1", "t9"], "why")
    assert document["deny"][0]["matches"] == ["t9"]
    assert document["file"]["include"] == []
    assert document["matches_unknown"] is None
    wide = tool("--list", "-o", "wide").stdout.splitlines()
    assert wide[0].split() == ["list", "entry", "added", "by", "reason", "matches", "now"]
    assert "t1, t9" in wide[1]
    assert "both lists of groups of A->B are empty" in tool("--list", "-o", "wide", word="groups").stderr
    tool.matches = SourceUnavailable("cluster A is away")
    answer = tool("--list", "-o", "wide")
    assert (answer.exit_code, "what entries match is not known: cluster A is away" in answer.stderr) == (0, True)
    document = json.loads(tool("--list", "-o", "json").stdout)
    assert (document["allow"][0]["matches"], document["matches_unknown"]) == (None, "cluster A is away")


def test_whole_lists_go_through_a_file(tool: Tool, tmp_path: Path) -> None:
    tool("--add", "t,ü.*", "--add-blacklist", "v")
    kept = tmp_path / "lists.json"
    kept.write_text(tool("--export").stdout)
    tool("--remove", "t", "--add", "x", "--add-blacklist", "w", "--remove-blacklist", "v")
    answer = tool("--import", str(kept), "--dry-run")
    assert answer.stdout.splitlines()[0] == "would change: +t -x deny +v deny -w"
    assert tool("--import", str(kept)).stdout == "Done.\n"
    assert tool.lists() == ["Current whitelist:", "ü.*", "t", "Current blacklist:", "v", "Done."]
    assert "nothing was changed" in tool("--import", str(kept)).stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "got no object"),
        ("{", "cannot be read"),
        ('{"v":2,"list":"groups","allow":["("],"deny":[7]}', "v: got 2; allowed 1"),
        ('{"v":2,"list":"groups","allow":["("],"deny":[7]}', "this command takes lists of topics"),
        ('{"v":2,"list":"groups","allow":["("],"deny":[7]}', "deny: got no list of texts"),
        ('{"v":2,"list":"groups","allow":["("],"deny":[7]}', "allow, entry 1: pattern '('"),
    ],
)
def test_a_file_that_cannot_be_used_changes_nothing(tool: Tool, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "lists.json"
    path.write_text(text)
    answer = tool("--import", str(path))
    assert (answer.exit_code, said in answer.output) == (1, True)
    assert TOPIC not in tool.target.held


def test_a_dry_run_says_what_would_begin_and_stop(tool: Tool) -> None:
    tool("--add", "old")
    tool.effect = Effect((Size("new", 3, 120, 4096),), (Size("old", 1, 0),), no_bytes="DESCRIBE is not allowed")
    answer = tool("--add", "new", "--remove", "old", "--dry-run")
    assert answer.stdout.splitlines() == [
        "would change: +new -old",
        "begins to flow: new, 3 partitions, 120 records to copy, 4096 bytes in all",
        "stops to flow: old, 1 partition, 0 records to copy, bytes unknown",
    ]
    assert answer.stderr == "bytes are unknown: DESCRIBE is not allowed\n"
    assert tool.lists()[1] == "old"
    document = json.loads(tool("--add", "new", "--dry-run", "-o", "json").stdout)
    assert (document["is_changed"], document["change"]["add"], document["allow"]) == (False, ["new"], ["old", "new"])
    assert document["effect"]["begins"][0] == {"name": "new", "partitions": 3, "records": 120, "bytes": 4096}
    tool.effect = Effect(unknown="cluster A is away")
    assert "what would begin and stop is not known: cluster A is away" in tool("--add", "new", "--dry-run").stderr
    tool.effect = Effect((Size("g"),))
    assert "begins to be taken: g\n" in tool("--add", "g", "--dry-run", word="groups").stdout


def test_programs_are_told_what_was_changed(tool: Tool) -> None:
    answer = tool("--add", "t", "--remove", "u", "-o", "json")
    document = json.loads(answer.stdout)
    assert answer.exit_code == 3
    assert (document["is_changed"], document["allow"], document["declined"]) == (
        True,
        ["t"],
        ["u is not on the allow list"],
    )


def test_a_topic_that_may_not_be_made_or_written_is_told(tool: Tool) -> None:
    tool.target.forbidden[TOPIC] = "not authorized"
    answer = tool("--add", "t")
    assert (answer.exit_code, "cannot be created: not authorized; allow CREATE" in answer.stderr) == (1, True)
    tool.target.down = "no route"
    assert (tool("--list").exit_code, "no route" in tool("--list").stderr) == (1, True)


def test_what_is_odd_about_the_topic_is_said_by_each_command(tool: Tool) -> None:
    tool("--add", "t")
    log = tool.target.log(TopicPartition(TOPIC, 0))
    log.append(TailRecord(0, 1, b"x", b"junk"))
    tool.target.held[TOPIC].configs["cleanup.policy"] = "delete"
    for option in ("--list", "--history", "--export"):
        told = tool(option).stderr.splitlines()
        assert told[0] == f"note: passed over 1 record of topic {TOPIC}: no act of srm-control"
        assert f"--alter --topic {TOPIC} --add-config cleanup.policy=compact" in told[1]
    assert tool("--add", "u").exit_code == 1
    assert tool.lists()[1:-2] == ["t"]


def test_a_change_that_is_interrupted_may_count(tool: Tool) -> None:
    def happens(what: str) -> None:
        if what == "list topics" and TOPIC in tool.target.held:
            raise KeyboardInterrupt

    tool.target.happens = happens
    answer = tool("--add", "t")
    assert (answer.exit_code, answer.output.splitlines()[-1]) == (
        130,
        "interrupted; the change may count all the same: --list says",
    )


def test_lists_that_only_a_newer_version_can_read_are_not_changed(tool: Tool) -> None:
    tool("--add", "t")
    writer = tool.target.writer("test", TargetUnavailable)
    writer.write([ControlRecord(TOPIC, act_key("x"), b'{"v":2}', partition=0)])
    for arguments in (("--list",), ("--add", "u"), ("--history",)):
        answer = tool(*arguments)
        assert (answer.exit_code, "upgrade this one" in answer.stderr) == (1, True)
    assert tool.target.log(TopicPartition(TOPIC, 0)).end == 2


def test_commands_at_once_lose_nothing(tool: Tool) -> None:
    """Each has read the lists before any of them writes."""
    writers = {name: ListWriter(tool.target, "A", replication_factor=1) for name in ("t", "u", "v")}
    assert all(one.state().of(ListKind.TOPICS) is NO_LISTS for one in writers.values())
    for name, one in writers.items():
        one.write(Act(ListKind.TOPICS, Change((name,)), 1, "ann@host"))
    assert tool.lists() == ["Current whitelist:", *writers, "Current blacklist:", "Done."]


def test_a_command_ends_when_its_change_can_be_read() -> None:
    target = MemoryCluster("B", TargetUnavailable, timeout=0.2)
    act = Act(ListKind.TOPICS, Change(("t",)), 1, "ann@host")
    ListWriter(target, "A", replication_factor=1).write(act)
    log = target.log(TopicPartition(TOPIC, 0))
    log.open_since = log.end  # nothing that comes now can be read
    with pytest.raises(TargetUnavailable, match="see --list whether it counts"):
        ListWriter(target, "A", replication_factor=1).write(act)
    target.timeout = 30.0
    looks: list[str] = []

    def happens(what: str) -> None:
        looks.append(what)
        if len(looks) == 20:
            log.open_since = None

    target.happens = happens
    assert len(ListWriter(target, "A", replication_factor=1).write(act).acts) == 3


# What a change would do, on clusters in memory


class Sized(World):
    def __init__(self, keys: dict[str, str] | None = None) -> None:
        super().__init__({"A->B.topics": "t", **(keys or {})})
        self.flow.write(b"a", b"b")
        self.topic("u", b"1", b"2", b"3")
        self.topic("mm2-x.internal")

    def effect(self, kind: ListKind, change: Change, **keys: Any) -> Effect:
        with ListWriterOf(self) as lists:
            after = change.on(lists.state().of(kind))
        return effect_of(self.flow.settings, kind, after, self.flow.reach, **keys)


class ListWriterOf:
    def __init__(self, world: World) -> None:
        self.lists = ListWriter(world.flow.target, "A", replication_factor=1)

    def __enter__(self) -> ListWriter:
        return self.lists

    def __exit__(self, *_: object) -> None:
        self.lists.close()


def test_what_begins_is_counted_from_where_it_stands() -> None:
    world = Sized()
    world.copied()
    world.flow.write(b"c")
    sizes = {TopicPartition("u", 0): 300, TopicPartition("t", 0): 50}
    effect = world.effect(ListKind.TOPICS, Change(("u", "mm2-x.*"), add_deny=("t",)), ask_bytes=lambda *_: sizes)
    assert effect == Effect((Size("u", 1, 3, 300),), (Size("t", 1, 1, 50),))

    def silent(*_: object) -> dict[TopicPartition, int]:
        raise ProtocolUnavailable("DESCRIBE is not allowed")

    effect = world.effect(ListKind.TOPICS, Change(("u",)), ask_bytes=silent)
    assert (effect.begins, effect.no_bytes) == ((Size("u", 1, 3),), "DESCRIBE is not allowed")
    assert world.effect(ListKind.TOPICS, Change(("t",))) == Effect()
    world.flow.source.down = "no route"
    assert "no route" in (world.effect(ListKind.TOPICS, Change(("u",))).unknown or "")


def test_groups_and_topics_that_go_back_begin_and_stop() -> None:
    world = Sized({"A->B.groups": "g.*"})
    world.flow.source.group_calls.committed = {name: {TopicPartition("t", 0): Committed(1)} for name in ("g1", "h")}
    assert world.effect(ListKind.GROUPS, Change(("h",), add_deny=("g1",))) == Effect((Size("h"),), (Size("g1"),))
    world.topic("B.t", b"x")
    world.topic("B.other", b"x")
    assert world.effect(ListKind.REVERSE, Change(("x",))) == Effect((), (Size("B.t", 1),))
    assert world.effect(ListKind.REVERSE, Change((r"B\.t",))) == Effect()


def test_entries_match_what_there_is() -> None:
    world = Sized()
    world.topic("B.t", b"x")
    settings, reach = world.flow.settings, world.flow.reach
    assert matches_of(settings, ListKind.TOPICS, ["u|t", ".*", "x"], reach) == {
        "u|t": ("t", "u"),
        ".*": ("t", "u"),
        "x": (),
    }
    assert matches_of(settings, ListKind.REVERSE, ["t", "u"], reach) == {"t": ("B.t",), "u": ()}
    world.flow.source.group_calls.committed = {"g": {}}
    assert matches_of(settings, ListKind.GROUPS, ["g.*"], reach) == {"g.*": ("g",)}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--add", "a\nb"), r"a\nb has characters that cannot be shown: write \xhh for one in a regex"),
        (("--add", os.fsdecode(b"\xff")), r"\udcff has characters that cannot be shown"),
        (("--add", "a", "--reason", "a\x1b[31m"), r"--reason a\x1b[31m: it has characters that cannot be shown"),
    ],
)
def test_what_cannot_be_shown_is_not_written(tool: Tool, arguments: tuple[str, ...], said: str) -> None:
    answer = tool(*arguments)
    assert answer.exit_code in (1, 2)
    assert said in answer.output


def test_a_file_that_is_too_deep_is_no_list(tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 200_000)
    answer = tool("--import", str(tmp_path / "deep.json"))
    assert (answer.exit_code, "deep.json: cannot be read" in answer.output) == (1, True)


def test_what_others_wrote_is_shown_with_control_characters_escaped(tool: Tool) -> None:
    tool("--add", "x")
    odd = Act(ListKind.TOPICS, Change(("y\n",)), 1, "ann\x1b", "a\nb")
    tool.target.writer("t", TargetUnavailable).write(
        [ControlRecord(TOPIC, act_key("zz"), encode_act(odd), partition=0)]
    )
    assert r"ann\x1b +y\n (a\nb)" in tool("--history").output
    assert "y\\n\n" in tool("--list").output
    assert r"ann\x1b" in tool("--list", "-o", "wide").output
