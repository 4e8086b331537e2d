"""What a file says of the alerts of `srm-service`. Reports, never raises."""

from __future__ import annotations

from urllib.parse import urlsplit

from srm_spark.config.keys_process import (
    ALERT_AFTER_KEY,
    ALERT_KINDS_KEY,
    ALERT_REPEAT_KEY,
    ALERT_RPO_KEY,
    ALERT_WEBHOOK_KEY,
)
from srm_spark.config.spelling import did_you_mean
from srm_spark.config.values import Values, split_list
from srm_spark.core.alerting import AlertKind, AlertSettings


def alert_settings(values: Values) -> AlertSettings | None:
    """Who is told, of what and when, as far as it goes; None where nobody is."""
    found = AlertSettings(
        values.text(ALERT_WEBHOOK_KEY),
        _kinds(values),
        values.number(ALERT_RPO_KEY),
        values.number(ALERT_AFTER_KEY),
        values.number(ALERT_REPEAT_KEY),
    )
    if not values.is_set(ALERT_WEBHOOK_KEY):
        for key, is_default in (
            (ALERT_KINDS_KEY, not values.is_set(ALERT_KINDS_KEY)),
            (ALERT_RPO_KEY, found.rpo == AlertSettings.rpo),
            (ALERT_AFTER_KEY, found.after == AlertSettings.after),
            (ALERT_REPEAT_KEY, found.repeat == AlertSettings.repeat),
        ):
            if not is_default:
                values.warn(key, f"tells nobody: {ALERT_WEBHOOK_KEY} is not set")
        return None
    if not _is_url(found.webhook):
        message = "is no URL of a webhook; allowed http://host… and https://host…"
        values.refuse(ALERT_WEBHOOK_KEY, message, f"write {ALERT_WEBHOOK_KEY} = https://…, or remove the line")
    return found


def _kinds(values: Values) -> frozenset[AlertKind]:
    if not values.is_set(ALERT_KINDS_KEY):
        return frozenset(AlertKind)
    known = {kind.value: kind for kind in AlertKind}
    words = [word for word in split_list(values.text(ALERT_KINDS_KEY)) if word]
    for word in words:
        if word not in known:
            message = f"got unknown alert {word}; allowed {', '.join(known)}"
            values.refuse(ALERT_KINDS_KEY, message, did_you_mean(word, list(known)))
    if not words:
        values.refuse(ALERT_KINDS_KEY, f"names no alert; allowed {', '.join(known)}", "remove the line for all")
    return frozenset(known[word] for word in words if word in known)


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
