"""What is wrong with a configuration that will run on another machine: what it refers to need not be on this one."""

from __future__ import annotations

import re
from pathlib import Path

from srm_spark.config.levels import Level, Setting
from srm_spark.config.load import Loaded
from srm_spark.config.references import BUILT_IN_PROVIDERS, REFERENCE, References
from srm_spark.config.source import Entry
from srm_spark.config.strimzi_logins import PROVIDER as KUBERNETES_SECRETS
from srm_spark.config.values import Report
from srm_spark.deploy.configuration import FILE_KEYS
from srm_spark.errors import Problem

_LOGIN = re.compile(r"(?:^|\.)(?:ssl|sasl)\..*$")


def problems_of(loaded: Loaded) -> tuple[list[Problem], list[str]]:
    """The problems there would be on any machine; and the entries, `place: key`, that only the driver's can check."""
    report = Report()
    references = References(loaded.sources, report)

    def is_away(entry: Entry) -> bool:
        """Whether what the value refers to is not on this machine."""
        if "${" not in entry.value:
            path = entry.value.strip() if entry.key.endswith(FILE_KEYS) else ""
            return bool(path) and not Path(path).is_file()
        before = len(report.problems) + len(report.warnings)
        references.expand(Setting(entry.value, Level.GLOBAL, entry.key, entry.place))
        return len(report.problems) + len(report.warnings) > before

    away = [entry for entry in loaded.sources.entries.values() if is_away(entry)]
    unchecked = {_subject(entry.key) for entry in away}
    problems = [one for one in loaded.report.problems if _subject(one.key) not in unchecked]
    return [*problems, *_unknown(loaded)], [f"{entry.place}: {entry.key}" for entry in away]


def _unknown(loaded: Loaded) -> list[Problem]:
    """References that no driver would resolve: those of ConfigMaps, for one."""
    entries = loaded.sources.entries
    if "config.resolver.class" in entries:
        return []
    declared = [key.split(".")[2] for key in entries if key.startswith("config.providers.") and key.count(".") > 2]
    known = {*BUILT_IN_PROVIDERS, *declared, KUBERNETES_SECRETS}
    hint = "write the value itself, by -D or in a file of --config"
    return [
        Problem(entry.place, entry.key, f"got {match[0]}: no driver can resolve it", hint)
        for entry in entries.values()
        for match in REFERENCE.finditer(entry.value)
        if match[1] not in known
    ]


def _subject(key: str) -> str:
    """A login is checked as a whole: a store by the key of its password."""
    return _LOGIN.sub(".(login)", key)
