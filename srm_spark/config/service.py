"""What a file says of `srm-service`. Reports, never raises; whether files exist, only the service itself looks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from srm_spark.config.keys_process import (
    HISTORY_DAYS_KEY,
    HISTORY_EMBEDDED_KEY,
    HISTORY_PATH_KEY,
    SERVICE_ANONYMOUS_KEY,
    SERVICE_AUDIT_KEY,
    SERVICE_CERTIFICATE_KEY,
    SERVICE_KEY_KEY,
    SERVICE_LISTEN_KEY,
    SERVICE_MOVES_KEY,
    SERVICE_TARGETS_KEY,
    SERVICE_USERS_KEY,
)
from srm_spark.config.levels import Level, Setting, written
from srm_spark.config.settings import HistorySettings, ServiceSettings
from srm_spark.config.source import Sources
from srm_spark.config.spelling import did_you_mean
from srm_spark.config.values import Report, Values, split_list

_PORT, _TLS_PORT = 6670, 6671
_HOST = "127.0.0.1"


def service_settings(
    sources: Sources, report: Report, aliases: Sequence[str], process: Values, expand: Callable[[Setting], str]
) -> ServiceSettings:
    """Its settings as far as they go."""
    values = {
        key: expand(written(entry, Level.GLOBAL)).strip()
        for key in (*_FILES, SERVICE_LISTEN_KEY, SERVICE_TARGETS_KEY)
        if (entry := sources.entries.get(key)) is not None
    }
    _check_files(sources, report, values)
    certificate, key = values.get(SERVICE_CERTIFICATE_KEY), values.get(SERVICE_KEY_KEY)
    targets = tuple(alias for alias in split_list(values.get(SERVICE_TARGETS_KEY, "")) if alias)
    for alias in targets:
        if alias not in aliases:
            place, allowed = sources.entries[SERVICE_TARGETS_KEY].place, ", ".join(aliases)
            message = f"got unknown alias {alias}; allowed {allowed}"
            report.problem(place, SERVICE_TARGETS_KEY, message, did_you_mean(alias, aliases))
    listen = values.get(SERVICE_LISTEN_KEY)
    default = _TLS_PORT if certificate else _PORT
    found = (_HOST, default) if listen is None else _address(listen, default)
    if found is None:
        message = f"got {listen!r}; allowed host:port with a port from 1 to 65535"
        place = sources.entries[SERVICE_LISTEN_KEY].place
        report.problem(place, SERVICE_LISTEN_KEY, message, f"write {SERVICE_LISTEN_KEY} = {_HOST}:{default}")
        found = (_HOST, default)
    return ServiceSettings(
        targets,
        *found,
        values.get(SERVICE_USERS_KEY),
        certificate,
        key,
        process.text(SERVICE_ANONYMOUS_KEY),
        values.get(SERVICE_AUDIT_KEY),
        values.get(SERVICE_MOVES_KEY, "."),
    )


def history_settings(values: Values) -> HistorySettings | None:
    """Where history is kept; None where it is not."""
    days, is_embedded = values.number(HISTORY_DAYS_KEY), values.flag(HISTORY_EMBEDDED_KEY)
    path = values.text(HISTORY_PATH_KEY)
    if not values.is_set(HISTORY_PATH_KEY):
        for key, is_default in ((HISTORY_DAYS_KEY, days == HistorySettings.days), (HISTORY_EMBEDDED_KEY, is_embedded)):
            if not is_default:
                values.refuse(key, f"has no effect without {HISTORY_PATH_KEY}", "write both or none")
        return None
    if not path or ":" in path or "%" in path:  # an address, or what deltalake takes for a part of one
        hint = f"write {HISTORY_PATH_KEY} = /var/lib/srm/history"
        values.refuse(HISTORY_PATH_KEY, f"got {path!r}; allowed the path of a folder, without ':' and '%'", hint)
        return None
    return HistorySettings(str(Path(path).expanduser().absolute()), days, is_embedded)


_FILES = (SERVICE_USERS_KEY, SERVICE_CERTIFICATE_KEY, SERVICE_KEY_KEY, SERVICE_AUDIT_KEY, SERVICE_MOVES_KEY)


def _check_files(sources: Sources, report: Report, values: dict[str, str]) -> None:
    for key in _FILES:
        if values.get(key) == "":
            place = sources.entries[key].place
            report.problem(place, key, "got ''; allowed the path of a file", "give a value or remove the line")
    for one, other in ((SERVICE_CERTIFICATE_KEY, SERVICE_KEY_KEY), (SERVICE_KEY_KEY, SERVICE_CERTIFICATE_KEY)):
        if one in values and other not in values:
            place = sources.entries[one].place
            report.problem(place, one, f"is set, but {other} is not", f"write {other} = FILE, or remove both")


def _address(text: str, default: int) -> tuple[str, int] | None:
    """Host and port; an IPv6 address stands in brackets. None where it is none."""
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(default)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        return None
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and 1 <= int(port) <= 65535
    return (host, int(port)) if host and not any(one.isspace() for one in host) and is_port else None
