"""What is run under each Spark, and which Sparks and Pythons: a test of each kind, as it stands among the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Pair(NamedTuple):
    """A Spark and the Python that it is tried with."""

    spark: str
    """`3.5`: the newest of that line that there is."""
    python: str


PAIRS = (Pair("3.5", "3.11"), Pair("4.0", "3.12"), Pair("4.1", "3.13"), Pair("4.2", "3.10"))
AREAS: Mapping[str, tuple[str, ...]] = {
    "keys, values, headers, times and order": ("tests/broker/test_fidelity.py",),
    "a batch that died": ("tests/broker/test_resume.py",),
    "drivers that are killed": ("tests/broker/test_soak.py", "tests/broker/test_early.py"),
    "exactly once": ("tests/broker/test_exactly_once.py",),
    "consumer groups": ("tests/broker/test_groups.py",),
    "SASL and TLS": ("tests/broker/test_security.py", "tests/broker/test_tls_from_keystores.py"),
    "tables of Delta": (
        "tests/spark/test_arrow.py",
        "tests/spark/test_map_table.py",
        "tests/broker/test_map_table.py",
        "tests/spark/test_history.py",
    ),
    "secrets stay hidden": ("tests/broker/test_secrets.py", "tests/spark/test_hidden_options.py"),
    "the real-time lane": ("tests/broker/test_lane.py", "tests/broker/test_realtime.py"),
    "a session that exists, and Spark Connect": (
        "tests/spark/test_existing_session.py",
        "tests/broker/test_sessions.py",
    ),
    "an embedded session": ("tests/spark/test_embedded_session.py",),
    "spark-submit": ("tests/broker/test_submit.py",),
}
"""Area → files of tests."""
FEW = ("keys, values, headers, times and order", "a batch that died", "tables of Delta")
"""Of each, where there is little time."""
