"""Classes that a configuration names: Java ones cannot run here, and the message says what to write instead."""

from __future__ import annotations

from srm_spark.config import keys
from srm_spark.config.values import Values

_FILTER = "write the rule as regular expressions in `{0}` and `{0}.exclude`"
_HINTS = {
    "group.filter.class": _FILTER.format("groups"),
    "config.property.filter.class": "write the rule as regular expressions in `config.properties.exclude`",
    "forwarding.admin.class": "remove the line, and let the user of srm-spark create topics on the target",
}


def check_plugins(values: Values) -> None:
    """Reports every plug-in class but Kafka's own."""
    for name, hint in _HINTS.items():
        setting = values.setting(name)
        if setting is None:
            continue
        own = keys.find(name).default or ""
        if setting.value.strip() not in (own, own.rpartition(".")[2]):
            values.refuse(
                name, f"got {setting.value.strip()}: a class of your own cannot run here; allowed {own}", hint
            )
