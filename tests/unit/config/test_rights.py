"""The rights of a flow: the table of docs/security.md, with the names of a file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from srm_spark.cli.control import main
from srm_spark.config import load_settings
from srm_spark.config.rights import acl_name, fence_id, rights_of_flow, rights_of_heartbeats, rights_to_steer
from srm_spark.core.model import Flow
from srm_spark.kafka.fencing import RECORDS_SLOT, FencingToken, TokenNote
from srm_spark.kafka.lease import lease_group

PAGE = Path(__file__).parents[3] / "docs" / "security.md"
FILE = """\
clusters = A, B
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
A->B.enabled = true
heartbeats.replication.enabled = false
dialect = mm2
"""


def _file(folder: Path, more: str) -> Path:
    path = folder / "srm.properties"
    path.write_text(FILE + more)
    return path


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("orders", "orders"),
        ("orders.eu-1", "orders.eu-1"),
        (r"pay\.out", "pay.out"),
        ("pay.*", "pay*"),
        (r"pay\..+", "pay.*"),
        (".*", "*"),
        ("a|b", "*"),
        ("x[0-9]", "*"),
        (".*-eu", "*"),
    ],
)
def test_a_pattern_becomes_the_narrowest_name_or_prefix(pattern: str, name: str) -> None:
    assert acl_name(pattern) == name


@pytest.mark.parametrize(
    ("more", "remote"),
    [
        ("topics = t.*", "A.t*"),
        ("topics = .*", "A.*"),
        ("topics = t\nreplication.policy.separator = _", "A_t"),
        ("topics = t.*\nreplication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy", "t*"),
    ],
)
def test_remote_topics_are_named_by_the_policy(tmp_path: Path, more: str, remote: str) -> None:
    (flow,) = load_settings([_file(tmp_path, more)]).flows
    written = {right.name for right in rights_of_flow(flow) if (right.alias, right.operation) == ("B", "ALTER_CONFIGS")}
    assert written == {remote}


def test_quotas_need_rights_only_where_they_are_copied(tmp_path: Path) -> None:
    def of_cluster(more: str) -> set[tuple[str, str]]:
        (flow,) = load_settings([_file(tmp_path, more)]).flows
        return {(right.alias, right.operation) for right in rights_of_flow(flow) if right.kind == "CLUSTER"}

    assert of_cluster("sync.user.quotas.enabled = true") - of_cluster("") == {
        ("A", "DESCRIBE_CONFIGS"),
        ("B", "ALTER_CONFIGS"),
    }


def test_offset_syncs_lie_where_the_file_says_or_nowhere(tmp_path: Path) -> None:
    def writers(more: str) -> set[tuple[str, str]]:
        (flow,) = load_settings([_file(tmp_path, more)]).flows
        return {(r.alias, r.name) for r in rights_of_flow(flow) if r.operation == "WRITE" and "syncs" in r.name}

    assert writers("") == {("A", "mm2-offset-syncs.B.internal")}
    assert writers("offset-syncs.topic.location = target\n") == {("B", "mm2-offset-syncs.A.internal")}
    assert writers("emit.offset-syncs.enabled = false\nemit.checkpoints.enabled = false\n") == set()


def test_the_exactly_once_mode_writes_in_transactions(tmp_path: Path) -> None:
    path = str(_file(tmp_path, "B.exactly.once.source.support = enabled\n"))
    output = CliRunner().invoke(main, ["config", "rights", path]).output
    assert "B: --operation Write --transactional-id 'srm-A->B-' --resource-pattern-type prefixed" in output


def test_positions_are_set_under_the_id_that_fences_the_records() -> None:
    flow = Flow("A", "B")
    own = FencingToken(lease_group(flow), "leases", TokenNote("", 0), {}, 1.0)
    assert own.transactional_id(RECORDS_SLOT) == fence_id(flow), "else an older writer of positions is fenced by nobody"


def test_only_who_puts_aside_needs_the_quarantine(tmp_path: Path) -> None:
    def rights(more: str) -> set[str]:
        (flow,) = load_settings([_file(tmp_path, more)]).flows
        return {right.operation for right in rights_of_flow(flow) if right.name == "mm2-quarantine.A.internal"}

    assert rights("") == rights("refused.record.policy = fix\npolicy.hold.topics = t\n") == set()
    assert rights("refused.record.policy = park\n") == rights("policy.park.topics = t\n") == {"CREATE", "WRITE", "READ"}


def test_a_flow_only_reads_its_lists(tmp_path: Path) -> None:
    (flow,) = load_settings([_file(tmp_path, "")]).flows
    of_flow, of_person = (
        {right.operation for right in rights if right.name == "mm2-control.A.internal"}
        for rights in (rights_of_flow(flow), rights_to_steer(flow))
    )
    assert (of_flow, of_person) == ({"CREATE", "READ"}, {"CREATE", "READ", "WRITE"})


def test_the_page_lists_exactly_these(tmp_path: Path) -> None:
    more = "topics = t\nsync.group.offsets.enabled = true\nsync.user.quotas.enabled = true"
    settings = load_settings([_file(tmp_path, more)])
    beat = next(beat for beat in settings.heartbeats if beat.flow == settings.flows[0].flow)
    flow = settings.flows[0]
    rights = (*rights_of_flow(flow), *rights_to_steer(flow), *rights_of_heartbeats(beat))
    words = {"t": "topics that flow", "A.t": "remote topics", "*": "groups"}
    needed = {(r.alias, r.operation, words.get(r.name, r.name)) for r in rights}
    rows = re.findall(r"^\| ([AB]) \| ([A-Z_, ]+) \| ([^|]+) \|", PAGE.read_text(), re.MULTILINE)
    told = {
        (alias, operation, re.sub(r"group |transactional id |the cluster |`| \(.*\)", "", name).strip())
        for alias, operations, name in rows
        for operation in operations.split(", ")
    }
    assert told == needed


def test_the_command_prints_them_for_kafka_acls(tmp_path: Path) -> None:
    path = str(_file(tmp_path, "topics = t.*"))
    result = CliRunner().invoke(main, ["config", "rights", path])
    assert result.exit_code == 0
    assert "A: --operation Read --topic 't' --resource-pattern-type prefixed" in result.output
    assert "B: --operation Read --group 'srm-A->B'" in result.output
    answer = json.loads(CliRunner().invoke(main, ["config", "rights", path, "-o", "json"]).output)
    assert {"alias": "B", "operation": "ALTER", "kind": "TOPIC", "name": "A.t*"}.items() <= answer[5].items()
