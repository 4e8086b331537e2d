"""Replaces `${provider:path:key}` by what it names, as Kafka's config providers do: `env`, `file`, `dir`, and yours.

Only values are replaced, never keys, and once: what a reference brings is not read again. An unknown provider leaves
the text as it is, as Kafka does, with a warning.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import javaproperties

from srm_spark.config.levels import Setting
from srm_spark.config.source import Sources
from srm_spark.config.spelling import did_you_mean
from srm_spark.config.stores import StoreError, secret_of
from srm_spark.config.values import Report, split_list
from srm_spark.core.plugins import load_class
from srm_spark.errors import PluginError, SrmError

REFERENCE = re.compile(r"\$\{([^}:]*):(?:([^}]*):)?([^}]*)\}")
"""`${provider:path:key}`; the path may be left out."""
BUILT_IN_PROVIDERS = ("env", "file", "dir", "securestore")
"""Those that need not be declared."""
_PACKAGE = "org.apache.kafka.common.config.provider."
STORE_PASSWORD = "SECURESTOREPASS"  # noqa: S105 - a name
"""The environment variable that opens SRM's secure storage."""


class UnresolvedReference(SrmError):
    """A reference cannot be resolved; names it, never what it holds."""


class Provider(Protocol):
    """Looks up one value; raises UnresolvedReference where there is none."""

    def get(self, path: str, key: str) -> str:
        """The value of `key` at `path`."""


class SecretResolver(Protocol):
    """What `config.resolver.class` names: `package.module:Class` with this one method."""

    def resolve(self, provider: str, path: str, key: str) -> str | None:
        """The value of `${provider:path:key}`; None where the provider is not this resolver's."""


class EnvProvider:
    """`${env:NAME}`; `allowlist.pattern` limits the names as in Kafka."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._allowed = re.compile(parameters.get("allowlist.pattern", ".*"))

    def get(self, _path: str, key: str) -> str:
        """The environment variable `key`."""
        if not self._allowed.fullmatch(key):
            raise UnresolvedReference(f"environment variable {key} is not in the provider's allowlist.pattern")
        if key not in os.environ:
            raise UnresolvedReference(f"environment variable {key} is not set; export it before starting")
        return os.environ[key]


class FileProvider:
    """`${file:/path/to.properties:key}`; `allowed.paths` limits the files as in Kafka."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._allowed = split_list(parameters.get("allowed.paths", ""))

    def get(self, path: str, key: str) -> str:
        """The value of `key` in a properties file."""
        _check_path(path, self._allowed)
        try:
            values = _properties(path, os.stat(path).st_mtime_ns)
        except (OSError, ValueError) as error:
            raise UnresolvedReference(f"{path} cannot be read: {_reason(error)}") from error
        if key not in values:
            raise UnresolvedReference(f"{path} has no key {key}; {did_you_mean(key, values) or 'add it'}")
        return values[key]


class DirectoryProvider:
    """`${dir:/path:name}`: the whole text of the file `name`, as Kubernetes mounts secrets."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._allowed = split_list(parameters.get("allowed.paths", ""))

    def get(self, path: str, key: str) -> str:
        """The text of the file `key` in the directory `path`."""
        _check_path(path, self._allowed)
        if Path(key).name != key:
            raise UnresolvedReference(f"{key!r} is not the name of a file in {path}")
        try:
            return Path(path, key).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise UnresolvedReference(f"{path}/{key} cannot be read: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else "it is not UTF-8 text"


def _check_path(path: str, allowed: Sequence[str]) -> None:
    if not path:
        raise UnresolvedReference("the path is missing; write ${file:/path/to/file:key}")
    if allowed and not any(Path(path).resolve().is_relative_to(Path(root).resolve()) for root in allowed):
        raise UnresolvedReference(f"{path} is not below the provider's allowed.paths")


@lru_cache(maxsize=64)
def _properties(path: str, changed: int) -> Mapping[str, str]:
    """Read once per change of the file, not once per key."""
    del changed
    return javaproperties.loads(Path(path).read_text(encoding="utf-8"))


class SecureStoreProvider:
    """`${securestore:/path/to/store.jceks:name}`: SRM's secure storage, opened by the password in SECURESTOREPASS."""

    def get(self, path: str, key: str) -> str:
        """The secret `key` of a JCEKS file."""
        _check_path(path, ())
        if STORE_PASSWORD not in os.environ:
            raise UnresolvedReference(f"environment variable {STORE_PASSWORD} is not set; export it before starting")
        try:
            return secret_of(path, key, os.environ[STORE_PASSWORD])
        except StoreError as error:
            raise UnresolvedReference(str(error)) from error


_BUILT_IN: Mapping[str, Callable[[Mapping[str, str]], Provider]] = {
    f"{_PACKAGE}EnvVarConfigProvider": EnvProvider,
    f"{_PACKAGE}FileConfigProvider": FileProvider,
    f"{_PACKAGE}DirectoryConfigProvider": DirectoryProvider,
}


class References:
    """Resolves the references of one configuration and reports those that cannot be."""

    def __init__(self, sources: Sources, report: Report) -> None:
        self._report = report
        self._resolver = self._load_resolver(sources)
        providers = (EnvProvider({}), FileProvider({}), DirectoryProvider({}), SecureStoreProvider())
        self._providers: dict[str, Provider] = dict(zip(BUILT_IN_PROVIDERS, providers, strict=True))
        for name in self._declared(sources):
            self._declare(sources, name)

    def expand(self, setting: Setting) -> str:
        """The value of `setting` with its references replaced."""
        if "${" not in setting.value:
            return setting.value

        def replace(match: re.Match[str]) -> str:
            provider, path, key = match[1], match[2] or "", match[3]
            try:
                value = self._look_up(provider, path, key)
            except UnresolvedReference as error:
                self._report.problem(setting.place, setting.key, f"cannot resolve {match[0]}: {error}")
                return ""
            if value is None:
                known = ", ".join(sorted(self._providers))
                self._report.warn(
                    setting.place, setting.key, f"{match[0]} is left as it is: known providers are {known}"
                )
            return match[0] if value is None else value

        return REFERENCE.sub(replace, setting.value)

    def _look_up(self, provider: str, path: str, key: str) -> str | None:
        if self._resolver is not None:
            try:
                value = self._resolver.resolve(provider, path, key)
            except Exception as error:  # foreign code, which may raise anything; its text may hold the secret
                raise UnresolvedReference(f"config.resolver.class failed with {type(error).__name__}") from error
            if value is not None:
                return value
        return self._providers[provider].get(path, key) if provider in self._providers else None

    def _declared(self, sources: Sources) -> list[str]:
        entry = sources.entries.get("config.providers")
        return [name for name in split_list(entry.value) if name] if entry else []

    def _declare(self, sources: Sources, name: str) -> None:
        prefix = f"config.providers.{name}."
        entry = sources.entries.get(f"{prefix}class")
        if entry is None:
            self._report.problem(
                sources.place_of("config.providers"),
                f"{prefix}class",
                "is missing; allowed " + ", ".join(_BUILT_IN),
            )
            return
        made = _BUILT_IN.get(entry.value.strip())
        if made is not None:
            parameters = {
                key.removeprefix(f"{prefix}param."): value.value
                for key, value in sources.entries.items()
                if key.startswith(f"{prefix}param.")
            }
            try:
                self._providers[name] = made(parameters)
            except re.error as error:
                key = f"{prefix}param.allowlist.pattern"
                message = f"got {parameters['allowlist.pattern']!r}: {error}"
                self._report.problem(sources.place_of(key), key, message, "write a regular expression")
        elif self._resolver is None:
            self._report.problem(
                entry.place,
                entry.key,
                f"got {entry.value.strip()}: a Java class cannot be loaded here",
                "write config.resolver.class = your_package.module:YourResolver, with resolve(provider, path, key)",
            )

    def _load_resolver(self, sources: Sources) -> SecretResolver | None:
        entry = sources.entries.get("config.resolver.class")
        if entry is None:
            return None
        own = "write package.module:Class, with resolve(provider, path, key)"
        try:
            resolver = load_class(entry.key, entry.value.strip(), own)()
        except PluginError as error:
            self._report.problem(entry.place, entry.key, f"got {entry.value.strip()}: {error.message}", error.hint)
            return None
        except Exception as error:  # making it runs foreign code
            message = f"got {entry.value.strip()}: cannot be made: {type(error).__name__}: {error}"
            self._report.problem(entry.place, entry.key, message, "it is called without arguments")
            return None
        if not callable(getattr(resolver, "resolve", None)):
            self._report.problem(
                entry.place, entry.key, f"got {entry.value.strip()}: has no method resolve(provider, path, key)"
            )
            return None
        loaded: SecretResolver = resolver
        return loaded
