"""What a flow has copied, compared by content: the flow is in memory, its map the product's own."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import srm_spark.look.verify
from srm_spark.cli.verify import lines
from srm_spark.core.model import Flow, OffsetRange, TopicPartition
from srm_spark.core.pieces import Piece
from srm_spark.core.tail import TailRecord
from srm_spark.core.verification import Checked, Difference, Finding, Reason, Verdict
from srm_spark.errors import SourceUnavailable, VerificationStateError
from srm_spark.look.verified_before import verified_before
from srm_spark.look.verify import Verification, Verified, verify
from tests.memory_cluster import MemoryLog, MemoryTopic
from tests.unit.memory_flow import HERE, THERE, MemoryFlow, flow_settings

VALUES = [b"%d" % number for number in range(10)]


def flow_of(keys: Mapping[str, str] | None = None) -> MemoryFlow:
    flow = MemoryFlow(flow_settings(keys))
    flow.write(*VALUES)
    flow.run()
    return flow


def verified(flow: MemoryFlow, number: int | None = None) -> Verification:
    return verify(flow.settings, lambda _: True, number, reach=flow.reach)


def alter(flow: MemoryFlow, offset: int, value: bytes) -> None:
    flow.remote.records[offset] = flow.remote.records[offset]._replace(value=value)


def test_what_was_copied_is_equal() -> None:
    found = verified(flow_of())
    (one,) = found.partitions
    assert found.verdict is Verdict.EQUAL
    assert (one.partition, one.remote, one.source) == (HERE, THERE, OffsetRange(0, 10))
    assert (one.checked.equal, one.not_yet, one.uncovered, one.unchecked) == (10, 0, (), None)


def test_nothing_is_written() -> None:
    flow = flow_of()
    before = {name: [log.end for log in topic.partitions] for name, topic in flow.target.held.items()}
    verified(flow)
    assert before == {name: [log.end for log in topic.partitions] for name, topic in flow.target.held.items()}


def test_what_is_not_copied_yet_is_counted_and_nothing_is_said_of_it() -> None:
    flow = flow_of()
    flow.write(b"x", b"y")
    found = verified(flow)
    assert (found.verdict, found.partitions[0].not_yet) == (Verdict.EQUAL, 2)


def test_where_nothing_was_copied_nothing_is_equal() -> None:
    flow = MemoryFlow(flow_settings())
    flow.write(*VALUES)
    found = verified(flow)
    assert (found.verdict, found.partitions[0].not_yet) == (Verdict.NOTHING, 10)
    assert verify(flow.settings, lambda _: False, reach=flow.reach).verdict is Verdict.NOTHING


def test_the_next_one_goes_on_behind_what_was_equal(tmp_path: Path) -> None:
    flow, path = flow_of(), tmp_path / "verified.json"

    def again() -> Verification:
        before = verified_before(path, flow.settings.flow)
        return verify(flow.settings, lambda _: True, before=before, reach=flow.reach)

    assert again().partitions[0].checked.equal == 10
    assert again().verdict is Verdict.NOTHING
    flow.write(b"x", b"y")
    flow.run()
    alter(flow, 11, b"!")
    for _ in range(2):  # what is different is not behind it
        found = again()
        assert (found.verdict, found.partitions[0].source) == (Verdict.DIFFERENT, OffsetRange(10, 12))
    alter(flow, 11, b"y")
    assert again().partitions[0].checked.equal == 2
    assert again().partitions[0].source == OffsetRange(12, 12)


def test_what_somebody_wrote_behind_the_last_copy_is_not_passed_by_the_next_one(tmp_path: Path) -> None:
    path, flow = tmp_path / "verified.json", flow_of({"foreign.writer.policy": "resume"})

    def again() -> Verification:
        before = verified_before(path, flow.settings.flow)
        return verify(flow.settings, lambda _: True, before=before, reach=flow.reach)

    assert again().verdict is Verdict.EQUAL
    flow.remote.append(TailRecord(0, 1_000, b"k", b"theirs"))
    flow.write(b"x")
    flow.run()
    found = again()
    assert found.partitions[0].checked.differences == {Difference.FOREIGN: 1}
    (finding,) = found.partitions[0].checked.findings
    assert (finding.source, finding.target) == (None, 10)


def test_what_lies_behind_an_open_transaction_of_the_target_is_not_copied_yet() -> None:
    flow = flow_of()
    flow.remote.open_since = 6
    found = verified(flow)
    (one,) = found.partitions
    assert (found.verdict, one.checked.equal, one.not_yet, one.source) == (Verdict.EQUAL, 6, 4, OffsetRange(0, 6))


def test_a_topic_that_is_made_anew_while_it_is_read_is_not_called_different(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = flow_of()
    alter(flow, 3, b"!")
    ids = iter([{"t": flow.source.held["t"].topic_id}, {"t": "another"}])
    monkeypatch.setattr(flow.source, "topic_ids", lambda _: next(ids))
    (one,) = verified(flow).partitions
    assert (one.verdict, one.unchecked) == (Verdict.NOTHING, "t was made anew on the source meanwhile")


def test_a_topic_that_was_made_anew_begins_at_its_beginning(tmp_path: Path) -> None:
    path, flow = tmp_path / "verified.json", Flow("A", "B")
    before = verified_before(path, flow)
    right = Verified(HERE, THERE, Checked(equal=7), OffsetRange(0, 7))
    before.took(right, "id")
    before.took(replace(right, partition=TopicPartition("t", 1)), None)
    assert verified_before(path, flow).begins({"t": "id"}) == {HERE: 7}
    assert verified_before(path, flow).begins({"t": "other"}) == {}


def test_what_was_ended_is_not_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow, path = flow_of(), tmp_path / "verified.json"

    class Ended(srm_spark.look.verify.Pace):
        def slowed(self, partition: TopicPartition, pieces: Iterable[Piece]) -> Iterator[Piece]:
            for number, piece in enumerate(super().slowed(partition, pieces)):
                yield piece
                if number == 4:
                    self.end()

    monkeypatch.setattr(srm_spark.look.verify, "Pace", Ended)
    verify(flow.settings, lambda _: True, before=verified_before(path, flow.settings.flow), reach=flow.reach)
    assert not path.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no state file"),
        ("[]", "no state file"),
        ('{"format": 2}', "format 2, expected 1"),
        ('{"format": 1, "flow": "B->A", "partitions": []}', "of flow B->A"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "verified.json"
    path.write_text(text)
    with pytest.raises(VerificationStateError, match=said):
        verified_before(path, Flow("A", "B"))


def test_a_sample_is_compared_as_everything_is() -> None:
    flow = flow_of()
    found = verify(flow.settings, lambda _: True, sample=4, reach=flow.reach)
    assert (found.verdict, found.partitions[0].checked.equal) == (Verdict.SAMPLED, 4)
    assert "none of 4 records that were chosen by chance differs" in (found.said_of_all or "")
    alter(flow, 4, b"!")
    found = verify(flow.settings, lambda _: True, sample=100, reach=flow.reach)
    (finding,) = found.partitions[0].checked.findings
    assert (found.verdict, finding[:3]) == (Verdict.DIFFERENT, (Difference.CHANGED, 4, 4))
    assert "1 record of 10 that were chosen by chance differ" in (found.said_of_all or "")
    assert verified(flow).said_of_all is None


def test_a_sample_finds_what_is_lost_and_knows_what_is_explained() -> None:
    flow = MemoryFlow(flow_settings())
    flow.write(*VALUES)
    flow.start()
    flow.record(*flow.copy(aside=[4]))
    found = verify(flow.settings, lambda _: True, sample=10, reach=flow.reach)
    assert [finding[:3] for finding in found.partitions[0].checked.findings] == [(Difference.LOST, 4, None)]
    flow = flow_of()
    flow.remote.delete_before(3)
    found = verify(flow.settings, lambda _: True, sample=10, reach=flow.reach)
    assert found.verdict is Verdict.SAMPLED
    assert found.partitions[0].checked.explained == {Reason.TARGET_DELETED: 3}


def test_one_changed_byte_is_a_difference() -> None:
    flow = flow_of()
    alter(flow, 4, b"!")
    found = verified(flow)
    assert found.verdict is Verdict.DIFFERENT
    (finding,) = found.partitions[0].checked.findings
    assert finding == (Difference.CHANGED, 4, 4, "other value")


def test_what_the_target_lost_is_a_difference_and_what_it_deleted_is_explained() -> None:
    flow = flow_of()
    flow.remote.delete_before(3)
    found = verified(flow)
    assert found.verdict is Verdict.EQUAL
    assert found.partitions[0].checked.explained == {Reason.TARGET_DELETED: 3}
    flow.remote.cut(8)  # in front of where the map ends; a consumer would wait there
    assert verified(flow).partitions[0].checked.differences == {Difference.LOST: 2}


def test_what_is_deleted_while_it_is_read_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = flow_of()
    records = flow.target.records

    def deleting(*arguments: Any, **options: Any) -> object:
        flow.remote.delete_before(5)
        return records(*arguments, **options)

    monkeypatch.setattr(flow.target, "records", deleting)
    found = verified(flow)
    assert found.partitions[0].checked.explained == {Reason.TARGET_DELETED: 5}
    assert found.verdict is Verdict.EQUAL


def test_records_in_quarantine_are_explained() -> None:
    flow = MemoryFlow(flow_settings({"refused.record.policy": "park"}))
    flow.write(*VALUES)
    flow.start()
    flow.park(4)
    flow.record(*flow.copy(aside=[4]))
    found = verified(flow)
    assert found.partitions[0].checked.explained == {Reason.QUARANTINED: 1}
    assert (found.verdict, found.partitions[0].checked.equal) == (Verdict.EQUAL, 9)


def test_a_passed_record_is_lost() -> None:
    flow = MemoryFlow(flow_settings())
    flow.write(*VALUES)
    flow.start()
    flow.record(*flow.copy(aside=[4]))
    (finding,) = verified(flow).partitions[0].checked.findings
    assert (finding.kind, finding.source, finding.target) == (Difference.LOST, 4, None)


def test_what_was_aborted_is_no_loss_whatever_the_flow_reads_now() -> None:
    flow = MemoryFlow(flow_settings())  # it reads everything now, and has read what was committed
    flow.write(*VALUES)
    flow.log.hidden |= {2, 3, 7}
    flow.start()
    flow.record(*flow.copy(aside=[2, 3, 5, 7]))
    found = verified(flow)
    assert found.partitions[0].checked.explained == {Reason.ABORTED: 3}
    assert [one.source for one in found.partitions[0].checked.findings] == [5]


def test_what_others_write_amid_the_copies_is_named() -> None:
    flow = flow_of({"foreign.writer.policy": "resume"})
    flow.remote.append(flow.remote.records[7])
    flow.remote.append(TailRecord(0, 1, None, b"theirs"))
    flow.write(b"more")
    flow.run()
    found = verified(flow).partitions[0].checked
    assert [(one.kind, one.source, one.target) for one in found.findings] == [
        (Difference.DOUBLED, 7, 10),
        (Difference.FOREIGN, None, 11),
    ]
    assert found.equal == 11


def test_what_somebody_else_copied_is_not_covered_and_not_called_equal() -> None:
    flow = MemoryFlow(flow_settings())
    flow.write(*VALUES)
    flow.start()
    for offset in range(6):
        flow.remote.append(flow.log.records[offset])
    flow.record(*flow.copy(start=6))
    found = verified(flow)
    (one,) = found.partitions
    assert (one.uncovered, one.checked.equal, one.verdict) == ((OffsetRange(0, 6),), 4, Verdict.EQUAL)
    assert found.verdict is Verdict.PARTLY
    flow.log.delete_before(6)
    assert verified(flow).verdict is Verdict.EQUAL, "what the source has no longer cannot be looked at"


def test_a_source_topic_that_was_made_anew_is_not_compared() -> None:
    flow = flow_of()
    flow.source.held["t"] = MemoryTopic([MemoryLog()], {})
    flow.write(*VALUES)
    found = verified(flow)
    assert "made anew" in str(found.partitions[0].unchecked)
    assert found.verdict is Verdict.NOTHING


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_partition_without_a_leader_is_told_and_not_waited_for(side: str) -> None:
    flow = flow_of()
    partition = HERE if side == "source" else THERE
    getattr(flow, side).without_leader.add(partition)
    found = verified(flow)
    assert [one.unchecked for one in found.partitions] == [f"{partition} has no leader"]
    assert found.verdict is Verdict.NOTHING


def test_a_topic_that_is_gone_is_told() -> None:
    flow = flow_of()
    flow.target.delete(THERE.topic)
    assert verified(flow).partitions[0].unchecked == "A.t-0 is not on the target"
    flow.source.delete("t")
    found = verified(flow)
    assert found.partitions[0].unchecked == "t-0 is not on the source"
    assert found.verdict is Verdict.NOTHING


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_topic_that_goes_before_its_turn_is_told_and_the_others_are_looked_at(
    side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = flow_of()
    cluster, topic = getattr(flow, side), HERE.topic if side == "source" else THERE.topic
    leaderless = cluster.leaderless

    def deleting(asked: Any) -> object:
        cluster.delete(topic)
        return leaderless(asked)

    monkeypatch.setattr(cluster, "leaderless", deleting)
    found = verified(flow)
    assert found.verdict is Verdict.NOTHING
    assert (found.partitions[0].unchecked or "").startswith(f"{topic}-0 is not on the {side}")


def test_with_a_statement_the_next_one_does_not_go_on_before_that_is_kept(tmp_path: Path) -> None:
    flow, path = flow_of(), tmp_path / "verified.json"
    before = verified_before(path, flow.settings.flow, waits=True)
    assert verify(flow.settings, lambda _: True, before=before, reach=flow.reach).verdict is Verdict.EQUAL
    assert not path.exists()
    before.keep()
    assert verified_before(path, flow.settings.flow).ends == before.ends != {}


def test_a_source_that_is_gone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = flow_of()

    def gone() -> dict[str, int]:
        raise SourceUnavailable("nobody there")

    monkeypatch.setattr(flow.source, "topics", gone)
    with pytest.raises(SourceUnavailable):
        verified(flow)


def test_where_one_partition_cannot_be_read_the_others_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a byte a second the other one would take 40 s."""
    flow, began = flow_of(), time.monotonic()
    flow.source.held["t"].partitions.append(MemoryLog())
    first_offsets = flow.source.first_offsets

    def gone(partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        if partitions != [HERE]:
            raise SourceUnavailable("nobody there")
        return first_offsets(partitions)

    monkeypatch.setattr(flow.source, "first_offsets", gone)
    with pytest.raises(SourceUnavailable):
        verify(flow.settings, lambda _: True, rate=1, reach=flow.reach)
    assert time.monotonic() - began < 10


def test_compaction_explains_what_is_missing_on_either_side() -> None:
    flow = flow_of()
    del flow.remote.records[4]
    assert verified(flow).verdict is Verdict.DIFFERENT
    flow.target.held[THERE.topic].configs["cleanup.policy"] = "compact"
    found = verified(flow)
    assert (found.verdict, found.partitions[0].checked.explained) == (Verdict.EQUAL, {Reason.TARGET_COMPACTED: 1})


def test_what_is_older_is_left_out() -> None:
    flow = MemoryFlow(flow_settings())
    for offset, value in enumerate(VALUES):
        flow.log.append(TailRecord(0, 1_000 + offset, b"k", value))
    flow.run()
    alter(flow, 3, b"!")
    alter(flow, 8, b"!")
    found = verify(flow.settings, lambda _: True, since=1_004, reach=flow.reach)
    (one,) = found.partitions
    assert (one.source, one.checked.equal) == (OffsetRange(4, 10), 5)
    assert [each.source for each in one.checked.findings] == [8]
    whole = verify(flow.settings, lambda _: True, since=0, reach=flow.reach).partitions[0]
    assert (whole.checked.equal, len(whole.checked.findings)) == (8, 2)
    assert verify(flow.settings, lambda _: True, since=2_000, reach=flow.reach).verdict is Verdict.NOTHING


def test_neighbours_are_told_in_one_line_and_no_more_lines_than_somebody_reads() -> None:
    checked = Checked(equal=3)
    found = [(5, 5), (6, 6), (7, 7), (9, 9), (10, 11)]
    checked.findings = [Finding(Difference.CHANGED, source, target, "other value") for source, target in found]
    checked.findings += [Finding(Difference.LOST, offset, None, "gone") for offset in range(20, 80, 2)]
    checked.findings += [Finding(Difference.FOREIGN, None, offset, "no copy") for offset in (90, 91)]
    checked.differences.update(one.kind for one in checked.findings)
    said = lines(Verified(HERE, THERE, checked, OffsetRange(0, 100), uncovered=(OffsetRange(0, 4),)))
    assert said[:4] == [
        "t-0: changed: source offsets 5 to 7, target offsets 5 to 7: other value",
        "t-0: changed: source offset 9, target offset 9: other value",
        "t-0: changed: source offset 10, target offset 11: other value",
        "t-0: lost: source offset 20: gone",
    ]
    assert "in all 5 changed, 30 lost, 2 foreign" in said[20]
    assert "source offsets 0 to 3" in said[21]
    assert len(said) == 22


def test_a_limit_is_kept() -> None:
    """40 bytes on both sides, the last one behind 38 others."""
    flow, began = flow_of(), time.monotonic()
    assert verify(flow.settings, lambda _: True, rate=100, reach=flow.reach).verdict is Verdict.EQUAL
    assert time.monotonic() - began >= 0.38
