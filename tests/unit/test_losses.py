"""Losses as they are kept for ever: bytes of their records, and nothing else taken for one."""

from __future__ import annotations

import pytest

from srm_spark.core.codec import decode_map_key, map_key
from srm_spark.core.losses import decode_loss, loss_key, loss_value, rests
from srm_spark.core.model import Interval, KeptLoss, Loss, LossCause, OffsetRange, TopicPartition

PARTITION = TopicPartition("t-ü", 3)
DELETED = Loss(OffsetRange(10, 15))
DIVERGED = Loss(OffsetRange(10, 15), LossCause.DIVERGED, OffsetRange(7, 12))


def test_a_kept_loss_has_these_bytes() -> None:
    assert loss_key(PARTITION, "id", DIVERGED).decode() == '["loss","t-ü",3,"id","diverged",10,15]'
    assert loss_value(DIVERGED, 1700).decode() == '{"v":1,"target":[7,12],"found_at":1700}'


@pytest.mark.parametrize("loss", [DELETED, DIVERGED, Loss(OffsetRange(0, 1), LossCause.TARGET)])
@pytest.mark.parametrize("topic_id", ["id", None])
def test_a_kept_loss_is_read_back(loss: Loss, topic_id: str | None) -> None:
    kept = decode_loss(loss_key(PARTITION, topic_id, loss), loss_value(loss, 5))
    assert kept == KeptLoss(PARTITION, loss, topic_id, 5)


def test_a_loss_is_no_part_of_the_map_and_the_other_way_round() -> None:
    assert decode_map_key(loss_key(PARTITION, "id", DELETED)) is None
    assert decode_loss(map_key(PARTITION, 10), loss_value(DELETED, 5)) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (b"x", loss_value(DELETED, 5)),
        (loss_key(PARTITION, None, DELETED), None),
        (loss_key(PARTITION, None, DELETED), b'{"v":2,"target":null,"found_at":5}'),
        (loss_key(PARTITION, None, DELETED), b"[]"),
        (b'["loss","t",3,null,"burnt",10,15]', loss_value(DELETED, 5)),
        (b'["loss","t",3,null,"deleted",15,10]', loss_value(DELETED, 5)),
    ],
)
def test_anything_else_is_none(key: bytes | None, value: bytes | None) -> None:
    assert decode_loss(key, value) is None


def test_a_loss_names_its_last_offset() -> None:
    assert str(DELETED) == "10 to 14"


@pytest.mark.parametrize(
    ("copied", "left"),
    [
        ([], None),
        ([(0, 10), (15, 20)], None),
        ([(8, 11), (12, 13)], [(11, 12), (13, 15)]),
        ([(10, 12)], [(12, 15)]),
        ([(0, 12), (12, 20)], []),
    ],
)
def test_of_a_loss_stays_what_was_not_copied_after_all(
    copied: list[tuple[int, int]], left: list[tuple[int, int]] | None
) -> None:
    copies = [Interval(start, 100 + start, end - start) for start, end in copied]
    kept = KeptLoss(PARTITION, DIVERGED, "id", 5)
    lost = None if left is None else [Loss(OffsetRange(*one), DIVERGED.cause, DIVERGED.target) for one in left]
    expected = None if lost is None else [KeptLoss(PARTITION, loss, "id", 5) for loss in lost]
    assert rests(kept, copies, (LossCause.DIVERGED, LossCause.SKIPPED)) == expected
    assert rests(kept, copies, (LossCause.TARGET,)) is None
