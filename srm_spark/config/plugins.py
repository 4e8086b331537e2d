"""Classes that a configuration names: Java ones cannot run here, and the message says what to write instead."""

from __future__ import annotations

from srm_spark.config import keys
from srm_spark.config.settings import FlowSettings
from srm_spark.config.values import Values
from srm_spark.core.filter_plugins import CONFIG_PROPERTIES, GROUPS, TOPICS, load_filter
from srm_spark.errors import PatternError, PluginError

_ADMIN = "forwarding.admin.class"


def check_plugins(values: Values, settings: FlowSettings) -> None:
    """Reports every filter that cannot be made, and every admin but Kafka's own; topology.py reports policies."""
    topics, checkpoints = settings.topics, settings.checkpoints
    for filter_key, class_name, include, exclude in (
        (TOPICS, topics.filter_class, topics.include, topics.exclude),
        (CONFIG_PROPERTIES, topics.config_filter_class, (".*",), topics.config_exclude),
        (GROUPS, checkpoints.filter_class, checkpoints.groups, checkpoints.groups_exclude),
    ):
        try:
            load_filter(filter_key, class_name, include, exclude)
        except PluginError as error:
            values.refuse(filter_key.key, f"got {class_name}: {error.message}", error.hint)
        except PatternError:
            pass  # reported where the pattern is written
    own, admin = keys.find(_ADMIN).default or "", values.text(_ADMIN)
    if admin not in (own, own.rpartition(".")[2]):
        message = f"got {admin}: a Java class cannot be loaded here, and no Python class takes its place; allowed {own}"
        hint = "remove the line and let the user of srm-spark create topics on the target, or create them beforehand"
        values.refuse(_ADMIN, message, hint)
