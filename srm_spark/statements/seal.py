"""Writes signed statements: the envelope, and beside it a page for people."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from srm_spark import __version__
from srm_spark.config.settings import Settings
from srm_spark.core.envelope import Predicate, Subject, in_toto
from srm_spark.core.moments import now
from srm_spark.errors import SigningFailed
from srm_spark.files import write_whole
from srm_spark.statements.keys import SigningKey, open_key, sealed
from srm_spark.statements.page import page_of

SUFFIX = ".intoto.jsonl"
"""As in-toto calls files of attestations: one envelope in a line."""
_LIBRARIES = ("confluent-kafka", "kafka-python", "cryptography")


@dataclass(frozen=True)
class Seal:
    """A key, and what stands in every statement that it signs."""

    key: SigningKey
    configuration: Mapping[str, str]
    """What the files say; secrets are masked."""

    def write(self, path: Path, about: Predicate, subjects: Iterable[Subject], found: Mapping[str, object]) -> None:
        """Sign what was `found` and keep it at `path`, and as a page in HTML beside it. Raises SigningFailed."""
        predicate = {
            "product": f"srm-spark {__version__}",
            "made": now(),
            "versions": _versions(),
            "configuration": dict(self.configuration),
            **found,
        }
        envelope = sealed(in_toto(about, subjects, predicate), self.key)
        write_whole(path, envelope.text(), SigningFailed, "another path")
        write_whole(page_path(path), page_of(envelope, path.name), SigningFailed, "another path")


def page_path(path: Path) -> Path:
    """Where the page of a statement lies."""
    return path.with_name(path.name.removesuffix(SUFFIX) + ".html")


def seal_of(settings: Settings) -> Seal | None:
    """What signs the statements of this configuration; None where it names no key. Raises SigningFailed."""
    signing = settings.signing
    if signing is None:
        return None
    return Seal(open_key(signing.key, signing.password), settings.written)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # another packaging of the same library
            found[name] = "unknown"
    return found
