"""Whether batches can be copied as they came, by the settings of a flow."""

from __future__ import annotations

from srm_spark.config.settings import FlowSettings
from srm_spark.kafka.batches.ways import is_used


def why_not_whole(settings: FlowSettings) -> str | None:
    """Why every record of a flow is looked at by itself; None where batches go whole, or are merged, where they can."""
    if settings.stamp is not None:
        return "provenance.header.enabled adds a header to each record"
    if not settings.batch.in_loop:
        return "compiled.loop.enabled = false: Spark's own source reads the records"
    return None if is_used(True) else "without the compiled loops Spark's own source reads the records"
