"""The benchmark as a Markdown page: medians with their spread, and the ratios that count."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from srm_spark.bench.contenders import EXACTLY_ONCE, LIMIT, OURS, THEIRS
from srm_spark.bench.figures import went
from srm_spark.core.wording import count

_FIGURES = {
    "backlog_rate": "records/s from a backlog",
    "backlog_cpu": "CPU µs/record from a backlog",
    "steady_rate": "records/s, second half",
    "steady_cpu": "CPU µs/record, second half",
    "gigabyte_cpu": "CPU s/GB, second half",
    "cores": "cores of the program, second half",
    "broker_cores": "cores of both brokers meanwhile",
    "memory_mib": "most memory, MiB",
    "start_seconds": "seconds to the first record",
}
SCALE_FIGURES = {
    "first_seconds": "seconds from the first start until one record of each partition was copied",
    "all_seconds": "seconds until one more record of each partition was copied",
    "one_seconds": "seconds until one record of one partition was copied, the others idle",
    "look_seconds": "seconds for a look at all topics, their ids on both sides, and their ends",
    "cores": "cores, while it waits",
    "idle_memory_mib": "memory, while it waits, MiB",
    "memory_mib": "most memory, MiB",
    "restart_seconds": "seconds from a start with everything copied until the next record was",
}
"""Of one flow, as they are seen from outside. Memory is resident memory of the process tree."""
_OF_LATENCY = {"p50": "p50", "p99": "p99", "p999": "p99.9", "cores": "cores"}
_INTRODUCTION = """\
# Benchmarks

Made by `make bench`: the programs in turn on the same two single-node brokers, with their own defaults
(`tasks.max=2`), one topic. Behind each run every record of the copy is compared with its source, for our first one of a
workload by plain consumers that share nothing with the writer. Medians, with the smallest and largest value; read the
ratios, the machine is small and shared by brokers and replicator. A ratio of rates above 1 and a ratio of CPU below 1
mean that srm-spark is ahead.
The second half is the second half of the records, when each program runs warm. CPU and memory are of the whole
process tree; of a page of memory that several processes share each counts its part. MirrorMaker 2 is ended when it has
copied half of the records, which takes it longer than the others take for all of them. The bare loop is the limit: a
program in Go that consumes and produces and does nothing else, without progress or offset syncs; it is left out where
Go is missing. Where the cores of the program and of the brokers make up the machine, a rate says as much about the
brokers as about the program; what it takes for itself is the CPU per record.

What srm-spark has to do depends on the batches that a producer has made: it copies a batch as it is (whole), packs
small ones and those with gaps anew (merged), or takes records out (one by one). Each workload is filled by a plain
producer whose settings make its batches, and what lies in the source's log is read from the broker's files before
anything is measured.
"""


def render(result: Mapping[str, Any], plots: Collection[str] = ()) -> str:
    """The page; `plots` are the images there are, as paths from the page."""
    return "\n".join(_lines(result, plots)) + "\n"


def _lines(result: Mapping[str, Any], plots: Collection[str]) -> Iterator[str]:
    workloads = result.get("workloads", {})
    yield _INTRODUCTION
    yield ", ".join(f"{key} {value}" for key, value in result["machine"].items()) + "."
    if workloads:
        yield from _glance(workloads)
        yield from _images(plots, "throughput", "cpu")
        for name, workload in workloads.items():
            yield from _workload(name, workload)
        yield from _cost(workloads)
    if "latency" in result:
        yield from _latency(result["latency"])
        yield from _images(plots, "latency")
    if "idle" in result:
        yield from _idle(result["idle"])
    if "groups" in result:
        yield from _groups(result["groups"])
    if "scale" in result:
        yield from _scale(result["scale"])
    if "flows" in result:
        yield from _flows(result["flows"])


def _images(plots: Collection[str], *names: str) -> Iterator[str]:
    for plot in plots:
        name = plot.rpartition("/")[2].removesuffix(".svg")
        if name in names:
            yield from ("", f"![{name}]({plot})")


def _glance(workloads: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", "## At a glance", "")
    yield f"{OURS} divided by {THEIRS}, and by the {LIMIT}; second half."
    yield ""
    yield (
        f"| workload | records/s | CPU per record | most memory | records/s beside the {LIMIT} | CPU beside it | went |"
    )
    yield "|---|---|---|---|---|---|---|"
    for name, workload in workloads.items():
        pairs = [("steady_rate", THEIRS), ("steady_cpu", THEIRS), ("memory_mib", THEIRS)]
        pairs += [("steady_rate", LIMIT), ("steady_cpu", LIMIT)]
        cells = [_ratio(workload, figure, contender) for figure, contender in pairs]
        yield f"| {name} | {' | '.join(cells)} | {_ways(workload)} |"


def _ways(workload: Mapping[str, Any]) -> str:
    """How our records went, of the medians of all rounds."""
    return went({way: share["median"] for way, share in workload.get("ways", {}).items()})


def _workload(name: str, workload: Mapping[str, Any]) -> Iterator[str]:
    contenders = workload["contenders"]
    shown = [contender for contender in (OURS, THEIRS, LIMIT) if contender in contenders]
    yield from ("", f"## {name}", "")
    rounds = workload["rounds"]
    yield f"{workload['description']}; {workload['records']:,} records, {rounds} round{'s' * (rounds > 1)},"
    yield f"{workload['measured']}."
    if batch := workload.get("batch"):
        records = count(batch["records"], "record")
        yield f"On the source the middle record lies in a batch of {batch['bytes']:,} B with {records}."
        yield f"Records of {OURS} went: {_ways(workload)}."
    yield ""
    yield f"| | {' | '.join(shown)} | ratio to {THEIRS} |"
    yield f"|---|{'---|' * len(shown)}---|"
    for figure, title in _FIGURES.items():
        spreads = [_figure(workload, one, figure) for one in shown]
        if not any(spreads):  # there was no such figure when it was measured
            continue
        cells = [_spread(spread) if spread else "unknown" for spread in spreads]
        yield f"| {title} | {' | '.join(cells)} | {_ratio(workload, figure, THEIRS)} |"


def _figure(workload: Mapping[str, Any], contender: str, figure: str) -> dict[str, float] | None:
    """A figure's spread; None where it was not measured."""
    contenders: dict[str, dict[str, float]] = workload["contenders"].get(contender, {})
    if figure == "gigabyte_cpu":
        # µs per record / bytes per record = s per MB
        share = 1000 / workload["record_bytes"]
        return {key: value * share for key, value in contenders.get("steady_cpu", {}).items()} or None
    return contenders.get(figure)


def _ratio(workload: Mapping[str, Any], figure: str, contender: str) -> str:
    ours, other = (_figure(workload, one, figure) for one in (OURS, contender))
    return f"{ours['median'] / other['median']:.2f}" if ours and other and other["median"] else "unknown"


def _cost(workloads: Mapping[str, Any]) -> Iterator[str]:
    compared = {name: one for name, one in workloads.items() if EXACTLY_ONCE in one["contenders"]}
    if not compared:
        return
    yield from ("", "## What the exactly-once mode costs", "")
    yield "The same flow with `target.exactly.once.source.support = enabled`, and how many times the default mode's"
    yield "figure that is."
    yield ""
    yield f"| | {' | '.join(compared)} |"
    yield f"|---|{'---|' * len(compared)}"
    for figure, title in _FIGURES.items():
        pairs = [(_figure(one, EXACTLY_ONCE, figure), _figure(one, OURS, figure)) for one in compared.values()]
        if not any(dear and plain for dear, plain in pairs):
            continue
        cells = [
            f"{_spread(dear)}, {dear['median'] / plain['median']:.2f} times" if dear and plain else "unknown"
            for dear, plain in pairs
        ]
        yield f"| {title} | {' | '.join(cells)} |"


def _latency(rates: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", "## Latency", "")
    yield "Milliseconds from writing a record of 100 B to the source until a consumer of the copy has it, under an even"
    yield "load over 6 partitions, and the cores that the program takes meanwhile. Every record is compared afterwards."
    yield "`make bench ARGS='--only latency'` makes these alone."
    yield ""
    yield f"| records/s | program | {' | '.join(_OF_LATENCY.values())} |"
    yield f"|---|---|{'---|' * len(_OF_LATENCY)}"
    for rate in sorted(rates, key=int):
        for name, one in rates[rate].items():
            yield f"| {int(rate):,} | {name} | {' | '.join(_spread(one[part]) for part in _OF_LATENCY)} |"


def _idle(idle: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", "## With nothing to copy", "")
    yield f"A topic of {idle['partitions']:,} partitions; each got one record, then one more, then none."
    yield ""
    yield f"| | {OURS} | {THEIRS} |"
    yield "|---|---|---|"
    titles = {
        "cores": "cores, while it waits",
        "memory_mib": "memory, MiB",
        "first_seconds": "seconds from the start until every partition was copied",
        "again_seconds": "seconds until one more record of each was copied",
    }
    for figure, title in titles.items():
        yield f"| {title} | {idle[OURS][figure]:,.2f} | {idle[THEIRS][figure]:,.2f} |"
    yield f"| seconds from the creation of a topic to its first record | {_spread(idle['new_topic'])} | up to 600 |"
    yield ""
    yield f"{THEIRS} looks for new topics every `refresh.topics.interval.seconds`, 600 by default; not measured."


def _groups(one: Mapping[str, float]) -> Iterator[str]:
    partitions, groups = _number(one["topics"] * one["partitions"]), _number(one["groups"])
    yield from ("", "## Consumer groups", "")
    yield f"A flow of {partitions} partitions and {groups} groups, each on {_number(one['partitions'])} partitions:"
    yield f"{_number(one['positions'])} positions. One round over all of them, on real brokers:"
    yield ""
    yield "| round | seconds |"
    yield "|---|---|"
    yield f"| the first: reads the offset map, writes a checkpoint of each position | {one['first']:.1f} |"
    yield f"| nothing has moved | {one['quiet']:.1f} |"
    yield f"| every tenth group has moved | {one['moved']:.1f} |"
    yield ""
    yield f"The process takes {_number(one['memory_mib'])} MiB. `python -m srm_spark.bench.groups` makes these alone."


def _scale(scale: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", "## Many partitions", "")
    yield "One flow, its partitions in topics of 100, brokers of one node. `python -m srm_spark.bench.scale` makes"
    yield "these; what follows from them is in [scaling.md](scaling.md)."
    yield from _sizes("partitions", SCALE_FIGURES, scale)


def _flows(flows: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", "## Many flows", "")
    yield "One driver, its flows between the same two brokers, each of 10 partitions."
    titles = {
        "first_seconds": "seconds from the start until one record of each partition was copied",
        "again_seconds": "seconds until one more record of each partition was copied",
        "cores": "cores, while it waits",
        "memory_mib": "memory, while it waits, MiB",
    }
    yield from _sizes("flows", titles, flows)


def _sizes(what: str, titles: Mapping[str, str], of_sizes: Mapping[str, Any]) -> Iterator[str]:
    """A column per size, a row per figure."""
    sizes = sorted(of_sizes, key=int)
    yield ""
    yield f"| {what} | {' | '.join(f'{int(size):,}' for size in sizes)} |"
    yield f"|---|{'---|' * len(sizes)}"
    for figure, title in titles.items():
        yield f"| {title} | {' | '.join(_cell(of_sizes[size].get(figure)) for size in sizes)} |"


def _cell(value: Mapping[str, float] | float | None) -> str:
    if value is None:
        return "unknown"
    return _spread(value) if isinstance(value, Mapping) else f"{value:,.2f}"


def _spread(figure: Mapping[str, float]) -> str:
    middle = _number(figure["median"])
    if figure["min"] == figure["max"]:
        return middle
    return f"{middle} ({_number(figure['min'])} to {_number(figure['max'])})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.2f}"
