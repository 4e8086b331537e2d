"""Pages of `docs/procedures`: their files and commands, in order, and whether what was printed is what they show.

A page is read as a user reads it, from its fenced blocks:

```
properties NAME     a file of this name, written anew
console             commands behind "$ " (a backslash goes on in the next line), each with what it prints
console until       each is repeated until it prints that
console exit=3      each ends with this exit code, not with 0
text                nothing to do
<!-- broker-a: kill -->   what happens to a broker: kill, start
```

What a command prints is compared line by line. Times, durations, process ids and the width of gaps differ from run to
run and count by their form (`plain`). A line `...` stands for any lines, `…` within a line for any characters.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "procedures"
INDEX = FOLDER / "README.md"

_BROKER = re.compile(r"\b(broker-[a-z0-9]+):9092\b")
_FAULT = re.compile(r"<!-- (broker-[a-z0-9]+): (kill|start) -->")
_CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d([.,]\d+)?(Z|\+00:00)?|\d{8}T\d{6}Z|\b\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? (ms|s|min|h)\b"), "DURATION"),
    (re.compile(r"\b(pid|driver) \d+"), "process N"),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True)
class PageFile:
    """What the user writes to `name`."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """What the user types, and what is printed then, at `line` of the page."""

    line: int
    text: str
    printed: tuple[str, ...]
    exit_code: int = 0
    repeats: bool = False


@dataclass(frozen=True)
class Fault:
    """What happens to a broker of the page: `kill` or `start`."""

    broker: str
    act: str


Step = PageFile | Command | Fault


@dataclass(frozen=True)
class Page:
    """One procedure."""

    path: Path
    steps: tuple[Step, ...]

    @property
    def brokers(self) -> list[str]:
        """Hosts of the page, in their order; each stands for a cluster of one broker at port 9092."""
        found = (name for name in _BROKER.findall(self.path.read_text()))
        return list(dict.fromkeys(found))

    @property
    def commands(self) -> list[Command]:
        """What is typed."""
        return [step for step in self.steps if isinstance(step, Command)]


def pages() -> list[Path]:
    """All procedures, without their index."""
    return sorted(path for path in FOLDER.glob("*.md") if path != INDEX)


def read_page(path: Path) -> Page:
    """Its steps; a ValueError names the line that is none of the form above."""
    return Page(path, tuple(_steps(path)))


def words_of(command: str) -> Iterator[list[str]]:
    """The programs of a line with their arguments, as the shell sees them; without redirections."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    is_target = False
    for word in lexer:
        if set(word) <= set("|&;"):
            yield words
            words = []
        elif word[0] in "<>":
            is_target = True
            words = words[:-1] if words and words[-1].isdigit() else words
        elif is_target:
            is_target = False
        else:
            words.append(word)
    if words:
        yield words


def plain(text: str) -> str:
    """Without what differs from run to run."""
    for pattern, word in _CHANGING:
        text = pattern.sub(word, text)
    return text.strip()


def is_as_shown(printed: Sequence[str], shown: Sequence[str]) -> bool:
    """Whether the lines of a run are those of the page."""
    pattern = "".join(_line_pattern(line) for line in shown)
    return re.fullmatch(pattern, "".join(f"{plain(line)}\n" for line in printed)) is not None


def _line_pattern(line: str) -> str:
    if line.strip() == "...":
        return r"(?:.*\n)*"
    return ".+".join(re.escape(part) for part in plain(line).split("…")) + r"\n"


def _steps(path: Path) -> Iterator[Step]:
    info: str | None = None
    block: list[str] = []
    start = 0
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if info is None:
            if line.startswith("```"):
                info, block, start = line.removeprefix("```"), [], number
            elif found := _FAULT.fullmatch(line):
                yield Fault(found[1], found[2])
            elif line.startswith("<!--"):
                raise ValueError(f"{path.name}:{number}: not a broker and kill or start: {line}")
        elif line == "```":
            yield from _of_block(f"{path.name}:{start}", start, info.split(), block)
            info = None
        else:
            block.append(line)
    if info is not None:
        raise ValueError(f"{path.name}:{start}: the block is not closed")


def _of_block(place: str, start: int, info: Sequence[str], lines: Sequence[str]) -> Iterator[Step]:
    match info:
        case ["text"]:
            return
        case ["properties", name]:
            yield PageFile(name, "".join(f"{line}\n" for line in lines))
        case ["console", *options]:
            codes = [int(option.removeprefix("exit=")) for option in options if option.startswith("exit=")]
            if len(options) != len(codes) + options.count("until"):
                raise ValueError(f"{place}: only until and exit=N can stand behind console: {options}")
            yield from _commands(place, start, lines, sum(codes), "until" in options)
        case _:
            raise ValueError(f"{place}: text, properties NAME or console, not {' '.join(info) or 'nothing'}")


def _commands(place: str, start: int, lines: Sequence[str], exit_code: int, repeats: bool) -> Iterator[Command]:
    texts: list[tuple[int, str, list[str]]] = []
    for number, line in enumerate(lines, start + 1):
        if texts and texts[-1][1].endswith("\\"):
            at, text, _ = texts[-1]
            texts[-1] = (at, f"{text}\n{line}", [])
        elif line.startswith("$ "):
            texts.append((number, line.removeprefix("$ "), []))
        elif texts:
            texts[-1][2].append(line)
        else:
            raise ValueError(f"{place}: the block begins with no command")
    for number, text, printed in texts:
        yield Command(number, text, tuple(printed), exit_code, repeats)
