"""Gives users on the target the quotas that they have on the source, by the rules of `core/quotas.py`."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from srm_spark.core.news import News
from srm_spark.core.quotas import (
    Quota,
    Quotas,
    QuotasCompared,
    after_refusals,
    before_changes,
    compare_quotas,
    quota_records,
)
from srm_spark.core.wording import count, some
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.made_here import write_made
from srm_spark.flow.topics.offset_map import OffsetMaps

log = logging.getLogger(__name__)

Refused = Mapping[Quota, str]
"""Quota → why it was not changed."""


class RemoteQuotas:
    """Of one run of a flow; `look` is a periodic task."""

    def __init__(self, clusters: Clusters, maps: OffsetMaps) -> None:
        self._clusters = clusters
        self._maps = maps
        self._refused, self._kept, self._failed = News(), News(), News()

    def look(self) -> None:
        """Set what differs on the target, and take back what was set here and is gone."""
        text, flow = "flow=%s quotas are not copied (sync.user.quotas.enabled): %s", self._clusters.settings.flow
        with self._failed.failing(lambda error: log.warning(text, flow, error)):
            self._sync()

    def _sync(self) -> None:
        flow, target = self._clusters.settings.flow, self._clusters.target
        here, there = self._clusters.source.quotas(), target.quotas()
        with self._maps.lock:
            self._maps.refresh()
            made = self._maps.made.quotas
        compared = compare_quotas(here, there, made, self._clusters.settings.acls.principals.apply)
        refused = change_quotas(self._clusters, made, compared)
        for quota, why in self._refused.changes(refused).items():
            log.warning("flow=%s quota on %s cannot be changed: %s: %s", flow, target.alias, quota, why)
        if changed := sorted(shown(compared, refused)):
            what = count(len(changed), "quota")
            log.info("flow=%s changed %s on %s: %s", flow, what, target.alias, some(changed))
        for quota, value in self._kept.changes(compared.kept).items():
            log.info("flow=%s keeps %s=%g on %s: somebody else set it", flow, quota, value, target.alias)


def change_quotas(clusters: Clusters, made: Quotas, compared: QuotasCompared) -> Refused:
    """Make the changes; what is new is recorded in front of them, the rest behind; quota → why it was refused."""
    before = before_changes(made, compared)
    _record(clusters, made, before)
    if compared.changes:
        clusters.require_lease()
    answers = clusters.target.alter_quotas(compared.changes) if compared.changes else {}
    refused = {quota: why for quota, why in answers.items() if why is not None}
    _record(clusters, before, after_refusals(made, compared, refused))
    return refused


def shown(compared: QuotasCompared, refused: Refused) -> list[str]:
    """What was changed, for people."""
    done = {quota: value for quota, value in compared.changes.items() if quota not in refused}
    return [f"{quota} {'taken back' if value is None else f'= {value:g}'}" for quota, value in done.items()]


def _record(clusters: Clusters, before: Quotas, now: Quotas) -> None:
    write_made(clusters, quota_records(before, now))
