"""`python -m srm_spark.spark.archive`: what Spark's JVM loads, kept so that the next embedded session starts sooner."""

from __future__ import annotations

from typing import Any

import click
from pyspark.sql import SparkSession

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


def _use(session: SparkSession) -> None:
    """A batch and a streaming query."""
    session.range(10).selectExpr("sum(id) AS sum").collect()
    ticks = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    query = ticks.writeStream.format("noop").trigger(once=True).start()
    query.awaitTermination()


if __name__ == "__main__":
    main(prog_name="python -m srm_spark.spark.archive")
