"""How Spark writes the checkpoint of a query: small local files, of which a micro-batch needs two before it ends."""

from __future__ import annotations

from collections.abc import Mapping

from srm_spark.jars.manifest import NEWEST_SPARK, line_of
from srm_spark.jars.sparks import spark_version

_STREAMING = "org.apache.spark.sql.execution.streaming"
_BEFORE_ITS_OWN_PACKAGE = frozenset({"3.5", "4.0"})


def checkpoint_settings(version: str | None = None) -> Mapping[str, str]:
    """For sessions that srm-spark starts, of a Spark of this version; without one, of the Spark that would run here."""
    line = line_of(version or spark_version() or NEWEST_SPARK)
    package = _STREAMING if line in _BEFORE_ITS_OWN_PACKAGE else f"{_STREAMING}.checkpointing"
    return {
        # Spark's defaults start a dozen processes (readlink, chmod) for each file, and take a tenth of a second for it.
        "spark.sql.streaming.checkpointFileManagerClass": f"{package}.FileSystemBasedCheckpointFileManager",
        # No second file with a checksum: the files live no longer than one generation of a query, and nobody reads them
        # after a crash. Spark writes them from 4.1 on.
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    }
