"""What a deployment is: files as texts, what the user must create, what to know, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class NeedKind(Enum):
    """What a need holds."""

    SECRET = "secret"  # noqa: S105 - a word
    """A text that nobody else may see; without a line end behind it."""
    FILE = "file"
    """A file as it is: a keystore, a truststore, a key."""


@dataclass(frozen=True)
class Need:
    """One thing that the configuration refers to and that no written file holds."""

    kind: NeedKind
    name: str
    """How the platform calls it: letters, digits, `_`, `-` and `.`; unique among the needs of one deployment."""
    origin: str
    """Where its content is today."""
    kept: tuple[str, str] | None = None
    """The Secret of Kubernetes, and the key in it, where it is already."""


@dataclass(frozen=True)
class Deployment:
    """Everything that the command has to say of one platform."""

    platform: str
    files: Mapping[str, str]
    """Path below the folder of the deployment → text."""
    needs: tuple[Need, ...]
    notes: tuple[str, ...]
    """What was changed or left out, and what cannot be known from here."""
    steps: tuple[str, ...]
    """What to do next, in this order; lines of a shell are marked by `$ `."""
    scripts: frozenset[str] = field(default_factory=frozenset)
    """Those of the files that are run."""
