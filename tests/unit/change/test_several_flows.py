"""One plan of several flows into one target: what two of them need is made once, and each finishes what it left."""

from __future__ import annotations

from pathlib import Path

import pytest

from srm_spark.change.apply import Ready, apply_plan, check
from srm_spark.change.document import load_plan, plans_document, save_plan
from srm_spark.change.look import make_plan
from srm_spark.change.report import RunReport, load_report, report_path
from srm_spark.config.load import load_settings
from srm_spark.core.acls import GROUP, Acl
from srm_spark.errors import SourceUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Clusters, filters_of
from tests.memory_cluster import MemoryCluster
from tests.unit.change.examples import add
from tests.unit.memory_flow import MemoryLease

FILE = """
clusters = A, B, C
A.bootstrap.servers = nowhere:1
B.bootstrap.servers = nowhere:2
C.bootstrap.servers = nowhere:3
A->C.enabled = true
B->C.enabled = true
topics = t
sync.group.acls.enabled = true
replication.factor = 1
offset.storage.replication.factor = 1
offset-syncs.topic.replication.factor = 1
emit.checkpoints.enabled = false
"""
READS = Acl("g", "LITERAL", "User:ann", "*", "READ", "ALLOW", GROUP)


class Two:
    """Flows `A->C` and `B->C`; both sources have the same entry of a group."""

    def __init__(self, folder: Path) -> None:
        (folder / "srm.properties").write_text(FILE)
        self.target = MemoryCluster("C", TargetUnavailable)
        self.target.entries = set()
        self.flows: list[Clusters] = []
        self.path = folder / "plan.json"
        for settings in load_settings([folder / "srm.properties"]).flows:
            source = MemoryCluster(settings.flow.source, SourceUnavailable)
            source.entries = {READS}
            add(source, "t")
            lease = MemoryLease()
            filters = filters_of(settings)
            self.flows.append(
                Clusters(settings, source, self.target, settings.policy(), filters, lambda lease=lease: lease)  # type: ignore[misc]
            )
        plans = [make_plan(clusters, prune=False, rights=lambda _: ()) for clusters in self.flows]
        save_plan(self.path, plans_document(plans, prune=False))

    def run(self) -> RunReport:
        plan, path = load_plan(self.path), report_path(self.path)
        ready = [Ready(clusters, make_plan(clusters, prune=False, rights=lambda _: ())) for clusters in self.flows]
        fresh = {str(one.clusters.settings.flow): one.fresh for one in ready}
        return apply_plan(ready, check(plan, load_report(path, plan.id), fresh), path, lambda _: None)


@pytest.mark.parametrize("asked", ["add ACLs", "create topics"])
def test_a_run_that_stopped_between_two_flows_is_finished(tmp_path: Path, asked: str) -> None:
    """The ACL that both need is made, whether that was written down or not."""
    two = Two(tmp_path)

    def happens(what: str) -> None:
        if what == asked and "A.t" in two.target.held:
            two.target.entries = {READS}
            raise KeyboardInterrupt

    two.target.happens = happens
    with pytest.raises(KeyboardInterrupt):
        two.run()
    assert (two.target.entries, "B.t" in two.target.held) == ({READS}, False)
    two.target.happens = lambda _: None
    for _ in range(2):
        report = two.run()
        assert (report.refused, "B.t" in two.target.held) == (0, True)
        assert [len(one.done) for one in report.flows.values()] == [10, 10]
