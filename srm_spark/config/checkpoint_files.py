"""How Spark writes the checkpoint of a query: small local files, of which a micro-batch needs two before it ends."""

CHECKPOINT_SETTINGS = {
    # Spark's defaults start a dozen processes (readlink, chmod) for each file, and take a tenth of a second for it.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # No second file with a checksum: the files live no longer than one generation of a query, and nobody reads them
    # after a crash.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
"""For Spark sessions that srm-spark starts: the first one is a class of Spark 4.2, which others may not have."""
