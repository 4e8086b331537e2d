"""The exactly-once mode at the start of a generation: older writers are fenced, and the map gets what it lacks."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping

from srm_spark.core.model import ProgressDetail, TopicPartition
from srm_spark.errors import ProtocolUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.committer import committer_of
from srm_spark.flow.topics.offset_map import Maps
from srm_spark.kafka.clients import options
from srm_spark.kafka.fencing import FencingToken, TokenNote, fence
from srm_spark.kafka.lease import Lease

log = logging.getLogger(__name__)


def begin_fencing(clusters: Clusters, lease: Lease, slots: int, *, was_exactly_once: bool) -> FencingToken | None:
    """Make this generation the only one that can write; None where the mode is off.

    Where the mode has just been switched off, writers of the run before are fenced all the same. Raises
    TargetUnavailable, before anything is written, for a login by which the mode cannot be had.
    """
    if clusters.settings.is_exactly_once:
        _require_login(clusters)
    if not clusters.settings.is_exactly_once and not was_exactly_once:
        return None
    fencing = new_fencing(clusters, lease, slots)
    return fencing if clusters.settings.is_exactly_once else None


def _require_login(clusters: Clusters) -> None:
    """Tasks write in transactions over connections of our own, which make fewer logins than librdkafka does."""
    try:
        fence = clusters.make_fence()
    except ProtocolUnavailable as error:
        way = "log in by PLAIN, SCRAM, OAUTHBEARER with client credentials or a certificate, or leave the mode off"
        raise TargetUnavailable(f"{error}: so nothing can be written in transactions; {way}") from error
    if fence is not None:
        fence.close()


def new_fencing(clusters: Clusters, lease: Lease, slots: int) -> FencingToken:
    """Make the owner of the lease the only one that can write in transactions.

    The token goes first: a writer that reads the old one has initialised before, and is fenced after.
    """
    settings = clusters.settings
    fencing = FencingToken(
        lease.group,
        settings.leases_topic,
        TokenNote(uuid.uuid4().hex, slots),
        options(settings.target, {}, f"{settings.flow}|transactions"),
        settings.admin_timeout_seconds,
    )
    before = [note for note in (TokenNote.decode(lease.noted), lease.older_token) if note is not None]
    fence_older(fencing, max(before, key=lambda note: note.slots, default=None), lease.note, fence)
    return fencing


def fence_older(
    fencing: FencingToken,
    before: TokenNote | None,
    write_note: Callable[[str], None],
    fence: Callable[[FencingToken, int], None],
) -> None:
    """Fence every slot that any generation before may have had.

    The note names all of them until that is done: a start that fails amid it leaves the next one as much to fence.
    """
    widest = fencing.note._replace(slots=max(fencing.note.slots, 0 if before is None else before.slots))
    write_note(widest.encode())
    fence(fencing, widest.slots)
    if widest != fencing.note:
        write_note(fencing.note.encode())


def complete_map(
    clusters: Clusters, maps: Maps, newest: Mapping[TopicPartition, list[ProgressDetail]], fencing: FencingToken | None
) -> bool:
    """Write to the map what was committed as progress by a batch that died before it came to the map."""
    missing = {
        partition: absent for partition, details in newest.items() if (absent := _missing(maps, partition, details))
    }
    if not missing:
        return False
    committer = committer_of(clusters, maps, fencing)
    for partition, details in missing.items():
        log.info("flow=%s partition=%s the offset map gets what was committed last", clusters.settings.flow, partition)
        for detail in details:
            committer.map({partition: detail})
    return True


def _missing(maps: Maps, partition: TopicPartition, details: list[ProgressDetail]) -> list[ProgressDetail]:
    partition_map = maps.get(partition)
    if partition_map is None or partition_map.source is None or partition_map.is_of_another(details[-1].topic_id):
        return details
    known = partition_map.next_offset or 0
    return [detail for detail in details if detail.source.end > known]
