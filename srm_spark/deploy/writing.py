"""Puts the files of a deployment into a folder; a file that is there and differs is not touched unless it is asked."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from srm_spark.deploy.report import Deployment
from srm_spark.errors import ConfigError, Problem

_RUN = 0o755
_READ = 0o644


class Outcome(Enum):
    """What came of one file."""

    WRITTEN = "written"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


def write(deployment: Deployment, folder: Path, *, force: bool = False) -> dict[str, Outcome]:
    """Writes all files or none; path below `folder` → what came of it.

    Raises ConfigError, with every file that differs from what would be written, or that cannot be written.
    """
    outcomes = {path: _outcome(folder / path, text) for path, text in deployment.files.items()}
    differing = [path for path, outcome in outcomes.items() if outcome is Outcome.REPLACED]
    if differing and not force:
        hint = "name another folder, or let it be replaced by --force"
        raise ConfigError([Problem(str(folder / path), "", "is there and differs", hint) for path in differing])
    for path, text in deployment.files.items():
        if outcomes[path] is not Outcome.UNCHANGED:
            _put(folder / path, text, _RUN if path in deployment.scripts else _READ)
    return outcomes


def _outcome(path: Path, text: str) -> Outcome:
    try:
        return Outcome.UNCHANGED if path.read_bytes() == text.encode() else Outcome.REPLACED
    except FileNotFoundError:
        return Outcome.WRITTEN
    except OSError as error:
        raise _unusable(path, error) from error


def _put(path: Path, text: str, mode: int) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        path.chmod(mode)
    except OSError as error:
        raise _unusable(path, error) from error


def _unusable(path: Path, error: OSError) -> ConfigError:
    return ConfigError([Problem(str(path), "", f"cannot be written: {error.strerror}", "name a folder of yours")])
