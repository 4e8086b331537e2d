"""`python -m srm_spark.testing.archive`: what a broker's JVM loads, kept so that the next ones start sooner."""

from __future__ import annotations

import click

from srm_spark.jars import KAFKA
from srm_spark.jars.archive import recording
from srm_spark.testing.java import QUICK_START, run_java
from srm_spark.testing.local_kafka import LocalKafka


@click.command()
def main() -> None:
    """Make the archive, where there is none."""
    with recording(KAFKA.name) as options:
        if options is None:
            return
        click.echo("keeping what a broker loads, once", err=True)
        with LocalKafka("archive", jvm_options=(*QUICK_START, *options)) as broker:
            servers = ("--bootstrap-server", broker.bootstrap_servers)
            run_java("org.apache.kafka.tools.TopicCommand", *servers, "--create", "--topic", "t")
            run_java("org.apache.kafka.tools.TopicCommand", *servers, "--delete", "--topic", "t")
            broker.stop(timeout=120)


if __name__ == "__main__":
    main(prog_name="python -m srm_spark.testing.archive")
