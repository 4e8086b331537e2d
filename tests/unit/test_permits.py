"""Whether a flow may still be written, asked in a process that holds no lease."""

from __future__ import annotations

import pytest

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.model import Flow
from srm_spark.errors import TargetUnavailable
from srm_spark.kafka.lease import Permit


def test_it_is_asked_where_the_newest_permit_says() -> None:
    """A worker outlives the settings that a flow began with."""
    target = ClusterSettings("b", "127.0.0.1:1")
    for topic in ("leases-1", "leases-2"):
        with pytest.raises(TargetUnavailable, match=f"topic {topic} does not say who holds the lease"):
            Permit(Flow("a", "b"), "holder", target, topic, 0.2).require()
