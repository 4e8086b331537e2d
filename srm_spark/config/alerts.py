"""What a file says of the alerts of `srm-service`. Reports, never raises."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from srm_spark.config import keys
from srm_spark.config.keys_process import (
    ALERT_AFTER_KEY,
    ALERT_KINDS_KEY,
    ALERT_REPEAT_KEY,
    ALERT_RPO_KEY,
    ALERT_WEBHOOK_KEY,
)
from srm_spark.config.levels import Level, Setting, written
from srm_spark.config.source import Sources
from srm_spark.config.spelling import did_you_mean
from srm_spark.config.values import Report, split_list
from srm_spark.core.alerting import AlertKind, AlertSettings

_OTHERS = (ALERT_KINDS_KEY, ALERT_RPO_KEY, ALERT_AFTER_KEY, ALERT_REPEAT_KEY)


def alert_settings(sources: Sources, report: Report, expand: Callable[[Setting], str]) -> AlertSettings | None:
    """Who is told, of what and when, as far as it goes; None where nobody is."""
    values = {
        key: expand(written(entry, Level.GLOBAL)).strip()
        for key in (ALERT_WEBHOOK_KEY, *_OTHERS)
        if (entry := sources.entries.get(key)) is not None
    }
    kinds = _kinds(sources, report, values.get(ALERT_KINDS_KEY))
    rpo, after, repeat = (
        _seconds(sources, report, key, values.get(key)) for key in (ALERT_RPO_KEY, ALERT_AFTER_KEY, ALERT_REPEAT_KEY)
    )
    webhook = values.get(ALERT_WEBHOOK_KEY)
    if webhook is None:
        for key in (key for key, value in values.items() if value != keys.find(key).default):
            report.warn(sources.entries[key].place, key, f"tells nobody: {ALERT_WEBHOOK_KEY} is not set")
        return None
    if not _is_url(webhook):
        place = sources.entries[ALERT_WEBHOOK_KEY].place
        message = "is no URL of a webhook; allowed http://host… and https://host…"
        report.problem(place, ALERT_WEBHOOK_KEY, message, f"write {ALERT_WEBHOOK_KEY} = https://…, or remove the line")
    return AlertSettings(webhook, kinds, rpo, after, repeat)


def _kinds(sources: Sources, report: Report, text: str | None) -> frozenset[AlertKind]:
    if text is None:
        return frozenset(AlertKind)
    known = {kind.value: kind for kind in AlertKind}
    words = [word for word in split_list(text) if word]
    place = sources.entries[ALERT_KINDS_KEY].place
    for word in words:
        if word not in known:
            message = f"got unknown alert {word}; allowed {', '.join(known)}"
            report.problem(place, ALERT_KINDS_KEY, message, did_you_mean(word, list(known)))
    if not words:
        report.problem(place, ALERT_KINDS_KEY, f"names no alert; allowed {', '.join(known)}", "remove the line for all")
    return frozenset(known[word] for word in words if word in known)


def _seconds(sources: Sources, report: Report, name: str, text: str | None) -> float:
    key = keys.find(name)
    assert key.default is not None
    assert key.low is not None
    assert key.high is not None
    if text is None:
        return float(key.default)
    if text.isascii() and text.isdecimal() and key.low <= int(text) <= key.high:
        return float(text)
    report.problem(sources.entries[name].place, name, f"got {text!r}; allowed {key.allows}")
    return float(key.default)


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
