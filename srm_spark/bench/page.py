"""The benchmark as a Markdown page: medians with their spread, and the ratios that count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

OURS, THEIRS, EXACTLY_ONCE = "srm-spark", "MirrorMaker 2", "exactly-once"
_FIGURES = {
    "backlog_rate": "records/s from a backlog",
    "backlog_cpu": "CPU µs/record from a backlog",
    "steady_rate": "records/s, second half",
    "steady_cpu": "CPU µs/record, second half",
    "start_seconds": "seconds to the first record",
}


def render(result: Mapping[str, Any]) -> str:
    """The page."""
    return "\n".join(_lines(result)) + "\n"


def _lines(result: Mapping[str, Any]) -> Iterator[str]:
    yield "# Benchmarks"
    yield ""
    yield "Made by `make bench`: both programs in turn on the same two single-node brokers, with their own defaults"
    yield "(`tasks.max=2`), one topic of 6 partitions, uncompressed. Each run must bring the exact number of"
    yield "records, and every record of our first copy is compared with its source. Medians, with the smallest and"
    yield "largest value; read the ratios, the machine is small and shared by brokers and replicator. A ratio of"
    yield "rates above 1 and a ratio of CPU below 1 mean that srm-spark is ahead."
    yield ""
    yield ", ".join(f"{key} {value}" for key, value in result["machine"].items()) + "."
    workloads = result.get("workloads", {})
    for workload, contenders in workloads.items():
        yield ""
        yield f"## Records of {workload}"
        yield ""
        yield f"| | {OURS} | {THEIRS} | ratio |"
        yield "|---|---|---|---|"
        for figure, title in _FIGURES.items():
            ours, theirs = contenders[OURS][figure], contenders[THEIRS][figure]
            ratio = ours["median"] / theirs["median"]
            yield f"| {title} | {_spread(ours)} | {_spread(theirs)} | {ratio:.2f} |"

    if workloads and all(EXACTLY_ONCE in contenders for contenders in workloads.values()):
        yield from _cost(workloads)
    if "groups" in result:
        yield from _groups(result["groups"])


def _cost(workloads: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield "## What the exactly-once mode costs"
    yield ""
    yield "The same flow with `target.exactly.once.source.support = enabled`, and how many times the default mode's"
    yield "figure that is."
    yield ""
    yield f"| | {' | '.join(workloads)} |"
    yield f"|---|{'---|' * len(workloads)}"
    for figure, title in _FIGURES.items():
        pairs = [(found[EXACTLY_ONCE][figure], found[OURS][figure]) for found in workloads.values()]
        cells = [f"{_spread(dear)}, {dear['median'] / plain['median']:.2f} times" for dear, plain in pairs]
        yield f"| {title} | {' | '.join(cells)} |"


def _groups(found: Mapping[str, float]) -> Iterator[str]:
    partitions, groups = _number(found["topics"] * found["partitions"]), _number(found["groups"])
    yield ""
    yield "## Consumer groups"
    yield ""
    yield f"A flow of {partitions} partitions and {groups} groups, each on {_number(found['partitions'])} partitions:"
    yield f"{_number(found['positions'])} positions. One round over all of them, on real brokers:"
    yield ""
    yield "| round | seconds |"
    yield "|---|---|"
    yield f"| the first: reads the offset map, writes a checkpoint of each position | {found['first']:.1f} |"
    yield f"| nothing has moved | {found['quiet']:.1f} |"
    yield f"| every tenth group has moved | {found['moved']:.1f} |"
    yield ""
    yield f"The process takes {_number(found['memory_mib'])} MiB. `python -m srm_spark.bench.groups` makes these alone."


def _spread(figure: Mapping[str, float]) -> str:
    return f"{_number(figure['median'])} ({_number(figure['min'])} to {_number(figure['max'])})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.2f}"
