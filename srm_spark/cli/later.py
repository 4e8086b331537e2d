"""Commands that are imported when somebody asks for them: one command needs a part of what all of them need.

Listing them, as `--help` and a shell at the Tab key do, imports those that are shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module

import click


class Later(MutableMapping[str, click.Command]):
    """Commands of a group, by name; `places` says of each what module of `srm_spark.cli` has it, and as what."""

    def __init__(self, places: Mapping[str, tuple[str, str]]) -> None:
        self._places = dict(places)
        self._known: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._known:
            module, attribute = self._places[name]
            self._known[name] = getattr(import_module(f"srm_spark.cli.{module}"), attribute)
        return self._known[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._known[name] = command

    def __delitem__(self, name: str) -> None:
        self._places.pop(name, None)
        self._known.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter({**self._places, **self._known})

    def __len__(self) -> int:
        return len({**self._places, **self._known})
