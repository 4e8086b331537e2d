"""A sample of the records of several logs, and what it says of those that are not in it. Pure."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate

from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.wording import count

_SURE = 0.95


def chosen(
    logs: Mapping[TopicPartition, OffsetRange], most: int, chance: random.Random
) -> dict[TopicPartition, list[int]]:
    """Offsets of all logs together, each as likely as any other; in order, and of each log at least an empty list."""
    partitions = list(logs)
    ends = list(accumulate(max(0, logs[one].end - logs[one].start) for one in partitions))
    found: dict[TopicPartition, list[int]] = {one: [] for one in partitions}
    total = ends[-1] if ends else 0
    for number in sorted(chance.sample(range(total), min(most, total))):
        at = bisect_right(ends, number)
        begin = ends[at - 1] if at else 0
        found[partitions[at]].append(logs[partitions[at]].start + number - begin)
    return found


def what_it_says(records: int, differing: int) -> str:
    """Of all records, by how many were looked at and how many of them were not equal.

    If a share p of all records differed, none of n that are chosen by chance would with probability (1 - p)^n.
    """
    if not records:
        return "no record was looked at: nothing is known of the others"
    if differing:
        return f"{count(differing, 'record')} of {records} that were chosen by chance differ: compare all of them"
    share = 1 - (1 - _SURE) ** (1 / records)
    return (
        f"none of {count(records, 'record')} that were chosen by chance differs: with {_SURE:.0%} confidence fewer "
        f"than {share * 100:.2g} % of all records do"
    )
