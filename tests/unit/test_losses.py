"""Losses as they are kept for ever: bytes of their records, and nothing else taken for one."""

from __future__ import annotations

import pytest

from srm_spark.core.codec import decode_map_key, map_key
from srm_spark.core.losses import decode_loss, loss_key, loss_value
from srm_spark.core.model import KeptLoss, Loss, LossCause, OffsetRange, TopicPartition

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
