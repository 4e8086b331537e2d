"""The page's plots, as SVG: ratios per workload, latency over load."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from srm_spark.bench.contenders import LIMIT, OURS, THEIRS

_COLOURS = {OURS: "#1f77b4", THEIRS: "#ff7f0e", LIMIT: "#7f7f7f"}
_STYLES = {"p50": "-", "p99": "--", "p999": ":"}
# The same figures make the same bytes, and text stays text.
mpl.rcParams.update({"svg.hashsalt": "srm-spark", "svg.fonttype": "none"})


def draw(result: Mapping[str, Any], folder: Path) -> list[str]:
    """Write what can be drawn into `folder`; the files' paths, seen from beside the folder."""
    figures: dict[str, Figure] = {}
    if workloads := _compared(result.get("workloads", {})):
        figures["throughput"] = _bars(workloads, "steady_rate", "records per second, second half")
        figures["cpu"] = _bars(workloads, "steady_cpu", "CPU per record, second half")
    if rates := result.get("latency"):
        figures["latency"] = _latency(rates)
    for name, figure in figures.items():
        folder.mkdir(exist_ok=True)
        figure.savefig(folder / f"{name}.svg", format="svg", metadata={"Date": None})
    return [f"{folder.name}/{name}.svg" for name in figures]


def _compared(workloads: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    by_workload = {name: workload["contenders"] for name, workload in workloads.items()}
    return {name: contenders for name, contenders in by_workload.items() if {OURS, THEIRS} <= contenders.keys()}


def _bars(workloads: Mapping[str, Mapping[str, Any]], figure: str, title: str) -> Figure:
    """A bar per contender and workload, in multiples of MirrorMaker 2, which is the line at 1."""
    drawing, axes = _axes(0.8 + 0.5 * len(workloads))
    names = list(workloads)
    for shift, contender in ((-0.2, OURS), (0.2, LIMIT)):
        known = [(at, workloads[name]) for at, name in enumerate(names) if contender in workloads[name]]
        ratios = [
            contenders[contender][figure]["median"] / contenders[THEIRS][figure]["median"] for _, contenders in known
        ]
        bars = axes.barh([at + shift for at, _ in known], ratios, 0.4, label=contender, color=_COLOURS[contender])
        axes.bar_label(bars, fmt="%.2f", padding=3, fontsize=8)
    axes.axvline(1, color=_COLOURS[THEIRS], label=THEIRS)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.set_title(f"{title}, {THEIRS} = 1", fontsize=10)
    axes.legend(fontsize=8)
    return drawing


def _latency(rates: Mapping[str, Any]) -> Figure:
    drawing, axes = _axes(4)
    loads = sorted(rates, key=int)
    for contender in dict.fromkeys(name for rate in loads for name in rates[rate]):
        known = [rate for rate in loads if contender in rates[rate]]
        for part, style in _STYLES.items():
            values = [rates[rate][contender][part]["median"] for rate in known]
            label = f"{contender} {part.replace('999', '99.9')}"
            numbers = [int(rate) for rate in known]
            axes.plot(numbers, values, style, marker="o", ms=3, label=label, color=_COLOURS.get(contender))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("records per second")
    axes.set_ylabel("ms")
    axes.set_title("latency", fontsize=10)
    axes.legend(fontsize=8)
    return drawing


def _axes(height: float) -> tuple[Figure, Axes]:
    drawing = Figure(figsize=(8, height), layout="constrained")
    return drawing, drawing.subplots()
