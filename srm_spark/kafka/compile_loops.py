"""`python -m srm_spark.kafka.compile_loops`: compile the loops over records once, ahead of the first start.

`make setup` does it, and whoever builds an image should: else the first start that needs them takes ten seconds longer.
Ends with an error where that cannot be, or where what was compiled cannot be kept.
"""

from __future__ import annotations

import click

from srm_spark.kafka.batches.ways import best, why_interpreted
from srm_spark.kafka.loop_cache import is_filled


@click.command()
def main() -> None:
    """Compile the loops over records, and keep them where the next process finds them; at once where they are there."""
    if is_filled():
        return
    if (reason := why_interpreted()) is not None:
        raise click.ClickException(f"the loops over records are not compiled: {reason}")
    click.echo("compiling the loops over records, once", err=True)
    best()
    if not is_filled():
        raise click.ClickException(
            "the loops over records cannot be kept: neither the package nor ~/.cache can be written; "
            "let NUMBA_CACHE_DIR name a folder"
        )


if __name__ == "__main__":
    main(prog_name="python -m srm_spark.kafka.compile_loops")
