"""`python -m srm_spark.spark.archive`: what Spark's JVM loads, kept so that the next embedded session starts sooner."""

from __future__ import annotations

from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import Any

import click
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from srm_spark.jars.archive import recording
from srm_spark.spark.session import ARCHIVE, LIGHT_SESSION, end, open_session

_OPTIONS = "spark.driver.extraJavaOptions"
_END_SECONDS = 180.0


@click.command()
def main() -> None:
    """Make the archive, where there is none."""
    with recording(ARCHIVE) as options:
        if options is None:
            return
        click.echo("keeping what Spark loads, once", err=True)
        session, _ = open_session(settings={_OPTIONS: " ".join((LIGHT_SESSION[_OPTIONS], *options))})
        _use(session)
        jvm: Any = session.sparkContext._gateway  # noqa: SLF001 - who waits for the end of the JVM needs its process
        end(session)
        jvm.shutdown()
        jvm.proc.stdin.close()
        jvm.proc.wait(_END_SECONDS)


def _collect(batch: DataFrame, _: int) -> None:
    batch.collect()


def _use(session: SparkSession) -> None:
    """A batch, a table, and a streaming query that hands its batches to Python and asks brokers that are not there."""
    session.sparkContext.setLogLevel("OFF")  # of the brokers that are not there
    with TemporaryDirectory() as folder:
        session.range(10).selectExpr("sum(id) AS sum").write.format("delta").save(f"{folder}/table")
        session.read.format("delta").load(f"{folder}/table").collect()
        ticks = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        same = ticks.mapInArrow(lambda parts: parts, ticks.schema)
        query = same.writeStream.foreachBatch(_collect).trigger(once=True).start()
        query.awaitTermination()
        options = {
            "kafka.bootstrap.servers": "127.0.0.1:1",
            "assign": '{"a": [0]}',
            "kafka.default.api.timeout.ms": "2000",
            "kafka.request.timeout.ms": "1000",
            "fetchOffset.numRetries": "1",
        }
        records = session.readStream.format("kafka").options(**options).load()
        query = records.writeStream.format("noop").trigger(once=True).start()
        with suppress(StreamingQueryException):
            query.awaitTermination()


if __name__ == "__main__":
    main(prog_name="python -m srm_spark.spark.archive")
