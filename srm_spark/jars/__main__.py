"""`python -m srm_spark.jars [SET|all]`: fetch jar sets and print their paths; used by `make setup`."""

from __future__ import annotations

import logging

import click

from srm_spark.errors import SetupError
from srm_spark.jars import JAR_SETS, ensure_java, fetch, find_java
from srm_spark.jars.fetch import pin
from srm_spark.jars.manifest import DRIVER

_SETS = (DRIVER, *JAR_SETS)


@click.command()
@click.argument("name", metavar=f"[{'|'.join(_SETS)}|all]", type=click.Choice([*_SETS, "all"]), default="all")
@click.option("--classpath", is_flag=True, help="Print one line: the paths joined by commas, as --jars wants them.")
@click.option("--ensure-java", "with_java", is_flag=True, help="Get a Java 17 first where this machine has none.")
@click.option("--java-home", "only_java", is_flag=True, help="Print the home of the Java in use, fetch nothing.")
@click.option("--pin", "with_pin", is_flag=True, help="After a change of manifest.py: write jars.lock again.")
@click.option("--quiet", is_flag=True, help="Print no paths.")
def main(*, name: str, classpath: bool, with_java: bool, only_java: bool, with_pin: bool, quiet: bool) -> None:
    """Fetch the jars of a set into the cache and print their paths; by default all but those of other releases."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        if with_java:
            ensure_java()
        if only_java:
            click.echo(find_java().home)
            return
        if with_pin:
            pin()
        at_setup = [DRIVER, *(jar_set.name for jar_set in JAR_SETS.values() if jar_set.at_setup)]
        asked = at_setup if name == "all" else [name]
        paths = [path for jar_set in asked for path in fetch(jar_set)]
    except SetupError as error:
        raise click.ClickException(str(error)) from error
    if not quiet:
        click.echo((",".join if classpath else "\n".join)(str(path) for path in paths))


if __name__ == "__main__":
    main(prog_name="python -m srm_spark.jars")
