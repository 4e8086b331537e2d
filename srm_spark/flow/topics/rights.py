"""Which topics the credentials of a flow may not read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from srm_spark.config.keys_client import SECURITY_KEYS
from srm_spark.flow.clusters import Clusters
from srm_spark.kafka.access import Access, Operations

OnTopics = Callable[[Clusters, Collection[str]], Mapping[str, Operations | None]]
"""Which operations on topics of the source its consumers are allowed; None where that is unknown."""


def on_topics(clusters: Clusters, topics: Collection[str]) -> Mapping[str, Operations | None]:
    """Ask the source, with the login of the flow's consumers."""
    settings = clusters.settings
    login = {key: value for key, value in settings.consumer.items() if key in SECURITY_KEYS}
    role = f"{settings.flow}|rights"
    return Access(settings.source, login, settings.admin_timeout_seconds, role).on_topics(topics)


def not_readable(clusters: Clusters, topics: Collection[str], ask: OnTopics = on_topics) -> set[str]:
    """Those of the source's topics that its consumers are not allowed to READ, as far as the source tells."""
    allowed = ask(clusters, topics)
    return {topic for topic, operations in allowed.items() if operations is not None and "READ" not in operations}
