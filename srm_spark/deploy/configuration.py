"""Writes a configuration anew for another machine: no secret in it, and every file it names at a place of that machine.

Whatever the user's files hold, nest or merge, one `srm.properties` comes out; read there, it means the same flows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Protocol

import javaproperties

from srm_spark import __version__
from srm_spark.config.jaas import JaasError, parse_jaas
from srm_spark.config.load import Loaded
from srm_spark.config.references import REFERENCE
from srm_spark.config.secrets import is_secret, mask
from srm_spark.config.source import Entry
from srm_spark.config.strimzi_logins import PROVIDER as KUBERNETES_SECRETS
from srm_spark.core.wording import count
from srm_spark.deploy.report import Need, NeedKind

CONFIGURATION = "srm.properties"
_STORE = ("ssl.truststore.location", "ssl.keystore.location", "sasl.oauthbearer.assertion.private.key.file")
FILE_KEYS = (*_STORE, "sasl.oauthbearer.assertion.template.file", "sasl.oauthbearer.assertion.file")
"""Properties whose value is a file on the machine of the driver and of its executors."""
_SERVICE = ("service.", "streams.replication.manager.service.")
_PROVIDERS = re.compile(r"config\.providers(\.|$)")
_FORMS = {
    "env": "the environment variable {key}",
    "file": "{key} in {path}",
    "dir": "the file {path}/{key}",
    "securestore": "{key} in the store {path}",
}
"""Provider → where what it names is today."""
_CLASSES = {"EnvVarConfigProvider": "env", "FileConfigProvider": "file", "DirectoryConfigProvider": "dir"}


class Places(Protocol):
    """Where a platform keeps what is not in a written file."""

    def secret(self, name: str) -> str:
        """The reference that brings the secret `name` when a driver starts there."""

    def file(self, name: str) -> str:
        """The path of the file `name`, for the driver and its executors."""


@dataclass(frozen=True)
class Folder:
    """Both lie as files in one folder, which the platform puts there; `.` is where a driver starts."""

    path: str

    def secret(self, name: str) -> str:
        """See Places."""
        return f"${{dir:{self.path}:{name}}}"

    def file(self, name: str) -> str:
        """See Places."""
        return name if self.path == "." else f"{self.path}/{name}"


@dataclass(frozen=True)
class Configuration:
    """The configuration as it is written."""

    text: str
    needs: tuple[Need, ...]
    notes: tuple[str, ...]


def configuration_of(loaded: Loaded, places: Places, changed: Mapping[str, str] = {}) -> Configuration:
    """The same flows for `places`; `changed` are keys that the platform needs to be otherwise."""
    writer = _Writer(loaded, places)
    lines = [
        f"# Written by srm-control deploy of srm-spark {__version__} after {', '.join(loaded.sources.files)}.",
        "# It holds no secret; change the files that it was made from, and write it anew.",
        javaproperties.join_key_value("dialect", loaded.settings.dialect),
    ]
    for entry in loaded.sources.entries.values():
        if entry.key in changed or entry.key == "dialect":
            continue
        value = writer.written(entry)
        if value is not None:
            lines.append(javaproperties.join_key_value(entry.key, value))
    lines += [javaproperties.join_key_value(key, value) for key, value in changed.items()]
    return Configuration("\n".join(lines) + "\n", tuple(writer.needs.values()), tuple(writer.notes(changed)))


def holds_secret(key: str, value: str) -> bool:
    """Whether a part of `value` is a secret itself, and not a reference to one."""
    bare = REFERENCE.sub("", value)
    if key.endswith("jaas.config"):
        return _jaas_holds_secret(bare, has_references=bare != value)
    return bool(bare.strip()) if is_secret(key) else mask(key, bare) != bare


def _jaas_holds_secret(bare: str, *, has_references: bool) -> bool:
    """A login without any reference is taken for a secret as a whole, however its options are called."""
    if not has_references:
        return bool(bare.strip())
    if not bare.strip():
        return False
    try:
        options = parse_jaas(bare).options
    except JaasError:
        return True
    return any(value and is_secret(name) for name, value in options.items())


@dataclass
class _Writer:
    """Takes the entries one after the other, and keeps what they need."""

    loaded: Loaded
    places: Places
    needs: dict[tuple[NeedKind, str], Need] = field(default_factory=dict)
    """By what they stand for: a file, a reference, or an entry."""
    left: dict[str, int] = field(default_factory=dict)

    def written(self, entry: Entry) -> str | None:
        """The value as it is written; None where the entry is left out."""
        if entry.key.startswith(_SERVICE):
            self.left["that only srm-service reads"] = self.left.get("that only srm-service reads", 0) + 1
            return None
        if _PROVIDERS.match(entry.key) and "config.resolver.class" not in self.loaded.sources.entries:
            return None  # what they name is brought by the platform
        if holds_secret(entry.key, entry.value):
            need = self._need(NeedKind.SECRET, entry.key, entry.key, f"the value of {entry.key} at {entry.place}")
            return self.places.secret(need.name)
        if entry.key.endswith(FILE_KEYS) and entry.value.strip() and "${" not in entry.value:
            path = entry.value.strip()
            need = self._need(NeedKind.FILE, path, PurePath(path).name, f"{path}, for {entry.key} at {entry.place}")
            return self.places.file(need.name)
        return REFERENCE.sub(self._reference, entry.value)

    def _reference(self, match: re.Match[str]) -> str:
        provider, path, key = match[1], match[2] or "", match[3]
        if provider == KUBERNETES_SECRETS:
            kept = (path.rpartition("/")[2], key)
            origin = f"{key} in the Secret {path}"
            return self.places.secret(self._need(NeedKind.SECRET, match[0], "-".join(kept), origin, kept).name)
        form = _FORMS.get(self._provider(provider))
        if form is None:
            return match[0]
        return self.places.secret(self._need(NeedKind.SECRET, match[0], key, form.format(path=path, key=key)).name)

    def _provider(self, name: str) -> str:
        entry = self.loaded.sources.entries.get(f"config.providers.{name}.class")
        return name if entry is None else _CLASSES.get(entry.value.strip().rpartition(".")[2], "")

    def _need(self, kind: NeedKind, of: str, name: str, origin: str, kept: tuple[str, str] | None = None) -> Need:
        """The need of one file, reference or entry; the same one for the same."""
        if (known := self.needs.get((kind, of))) is not None:
            return known
        need = Need(kind, self._free(name_of(name)), origin, kept)
        self.needs[kind, of] = need
        return need

    def _free(self, name: str) -> str:
        """As a name of an environment variable, too, it is to be another one than all others."""
        taken = {variable_of(need.name) for need in self.needs.values()}
        numbered = (name if number == 1 else f"{number}-{name}" for number in range(1, len(taken) + 2))
        return next(one for one in numbered if variable_of(one) not in taken)

    def notes(self, changed: Mapping[str, str]) -> list[str]:
        """What is not as in the user's files."""
        entries = self.loaded.sources.entries
        notes = [f"left out {count(number, 'key')} {why}" for why, number in self.left.items()]
        for key, value in changed.items():
            former = entries.get(key)
            if former is None or former.value.strip() != value:
                notes.append(f"{key} = {value}{f' instead of {former.shown}' if former else ''}")
        if (resolver := entries.get("config.resolver.class")) is not None:
            notes.append(f"{resolver.place}: {resolver.key} = {resolver.value}: its package has to be there, too")
        return notes


def variable_of(name: str) -> str:
    """The environment variable for a need of that name."""
    return f"SRM_{re.sub('[^A-Z0-9]', '_', name.upper())}"


def name_of(text: str) -> str:
    """A name that every platform takes for a secret or a file."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text.replace("->", "-to-")).strip("_.-") or "value"
