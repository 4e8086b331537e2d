"""`srm-control statement key` makes what signs statements; `verify-statement` checks one, and needs no cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from srm_spark.cli.manual import manual, overview
from srm_spark.cli.options import DIFFERENT, FILE, OK, OUTPUT, print_json, told
from srm_spark.core.asked import part_of
from srm_spark.core.envelope import Predicate
from srm_spark.core.verification import GOOD
from srm_spark.core.wording import count, escaped
from srm_spark.errors import SigningFailed
from srm_spark.files import write_whole
from srm_spark.statements import check_statement, make_keys, page_of, read_public_key

NO_KEY = "write statement.key = FILE, or give -D statement.key=FILE; srm-control statement key makes one"
_PRIVATE, _PUBLIC = "statement.key", "statement.pub"


@overview("srm-control statement key --out keys")
@click.group()
def statement() -> None:
    """What signs statements of moves and verifications."""


@manual(
    "srm-control statement key --out keys",
    reads="nothing.",
    writes=f"{_PRIVATE} and {_PUBLIC} in that directory; a file that is there stays as it is, and nothing is written",
)
@statement.command()
@click.option("--out", "folder", required=True, type=click.Path(path_type=Path, file_okay=False), help="A directory.")
@click.option("--password", is_flag=True, help="Ask for a password of the private key.")
@OUTPUT
def key(*, folder: Path, password: bool, output: str) -> None:
    """Makes a pair of Ed25519 keys: one signs and stays secret, by the other one anybody checks."""
    word = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True) if password else None
    with told():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SigningFailed(f"{folder} cannot be made: {error.strerror}") from None
        name = make_keys(folder / _PRIVATE, folder / _PUBLIC, word)
    if output == "json":
        print_json({"key": name, "private": str(folder / _PRIVATE), "public": str(folder / _PUBLIC)})
        return
    click.echo(f"key {name}")
    click.echo(f"write statement.key = {folder / _PRIVATE}, and give {folder / _PUBLIC} to those who check")


@manual(
    "srm-control verify-statement orders.intoto.jsonl --public-key statement.pub",
    reads="the two files; no cluster.",
    writes="nothing, or the page of --page.",
    ok="the key has signed it, and it says that everything is equal, or moved",
    error="it is to be believed in nothing: it was changed, another key has signed it, or it is no statement",
    different="the key has signed it, and it says that not everything is equal, or moved",
)
@click.command()
@click.argument("file", type=FILE)
@click.option("--public-key", "public", required=True, type=FILE, help="The public half of the key, in PEM.")
@click.option("--page", type=FILE, help="Draw the statement as a page in HTML, too.")
@OUTPUT
def verify_statement(*, file: Path, public: Path, page: Path | None, output: str) -> None:
    """Checks that a statement is, byte by byte, what a key has signed, and prints what it says."""
    with told():
        envelope, found = check_statement(file, read_public_key(public))
        if page is not None:
            write_whole(page, page_of(envelope, file.name), SigningFailed, "--page")
    said: dict[str, Any] = found["predicate"]
    about = Predicate(found["predicateType"])
    if output == "json":
        print_json(found)
    else:
        click.echo(f"signed by key {envelope.key_id}")
        click.echo(escaped(_line(about, said)))
    raise SystemExit(OK if _is_good(about, said) else DIFFERENT)


def _is_good(about: Predicate, said: dict[str, Any]) -> bool:
    if about is Predicate.VERIFICATION:
        return said["verdict"] in {one.value for one in GOOD}
    return not said["unsafe"]


def _line(about: Predicate, said: dict[str, Any]) -> str:
    if about is Predicate.VERIFICATION:
        equal = sum(one["equal"] for one in said["partitions"])
        text = f"{said['verdict']}: {count(equal, 'record')} of {count(len(said['partitions']), 'partition')}"
        part = part_of(said["asked"])
        only = "" if part is None else f"; only {part} was looked at"
        return f"verification of {said['flow']}, {said['began']} to {said['ended']}: {text}{only}"
    moved = "everything moved" if not said["unsafe"] else f"not everything moved: {'; '.join(said['unsafe'])}"
    return f"{said['move']} of {said['flow']}, {said['began']} to {said['ended']}: {moved}"
