"""Options may be cut short where that leaves one meaning, as in SRM's own srm-control: `--bootstrap-server h:p`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click


class _Prefixed:
    """A command of which options can be cut short; beside click.Command or click.Group."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        assert isinstance(self, click.Command)
        parsed: list[str] = super().parse_args(ctx, list(_whole(self, ctx, args)))  # type: ignore[misc]
        return parsed


class PrefixedCommand(_Prefixed, click.Command):
    """A command."""


class PrefixedGroup(_Prefixed, click.Group):
    """A group, as far as its own options go: what follows a command's name is that command's."""


def _whole(command: click.Command, ctx: click.Context, args: list[str]) -> Iterator[str]:
    options = {name: each for each in command.get_params(ctx) if isinstance(each, click.Option) for name in each.opts}
    rest = iter(args)
    for arg in rest:
        if arg == "--" or not arg.startswith("-"):
            yield arg
            if arg == "--" or isinstance(command, click.Group):
                yield from rest
            continue
        written, equals, value = arg.partition("=")
        name = _meant(written, options, ctx) if arg.startswith("--") else written
        yield f"{name}{equals}{value}"
        option = options.get(name)
        if option is not None and not (option.is_flag or option.count or equals):
            yield from _value(rest)


def _value(rest: Iterator[str]) -> Iterator[str]:
    """The next word, whatever it looks like."""
    for arg in rest:
        yield arg
        return


def _meant(written: str, options: dict[str, Any], ctx: click.Context) -> str:
    if written in options:
        return written
    found = {name: option for name, option in options.items() if name.startswith(written)}
    if len({id(option) for option in found.values()}) > 1:
        if ctx.resilient_parsing:  # a shell asks for completions
            return written
        raise click.UsageError(f"{written} may be {', '.join(sorted(found))}", ctx)
    return next(iter(found), written)
