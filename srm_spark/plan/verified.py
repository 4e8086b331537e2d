"""What was found by content before groups move, as a signed statement says it."""

from __future__ import annotations

from pathlib import Path

from srm_spark.config.settings import FlowSettings
from srm_spark.core.asked import part_of
from srm_spark.core.envelope import Predicate
from srm_spark.core.filters import split_list
from srm_spark.core.verification import GOOD, Verdict
from srm_spark.errors import MoveError, StatementRefused
from srm_spark.plan.snapshot import Verified
from srm_spark.statements import Seal, check_statement

_GOOD_ENOUGH = frozenset({*GOOD, Verdict.PARTLY})


def read_verified(path: Path, seal: Seal, settings: FlowSettings) -> Verified:
    """The statement of a verification of the flow that the same key has signed.

    Raises MoveError for any other file: of another flow, or of one of that name between other clusters, and where
    copies differ, or none was compared.
    """
    flow = settings.flow
    try:
        envelope, found = check_statement(path, seal.key.public)
    except StatementRefused as error:
        raise MoveError(f"--verified: {error}; make it with srm-control verify --statement, by the same key") from None
    said = found["predicate"]
    if found["predicateType"] != Predicate.VERIFICATION.value or said["flow"] != str(flow):
        about = f"{found['predicateType']} of {said['flow']}"
        raise MoveError(f"--verified: {path} is {about}, not the verification of {flow}")
    for cluster in (settings.source, settings.target):
        was = str(said["clusters"].get(cluster.alias, ""))
        if not _servers(was) & _servers(cluster.bootstrap_servers):
            here = f"{cluster.alias} is {cluster.bootstrap_servers} here"
            raise MoveError(f"--verified: {path} was made of another cluster {cluster.alias}, at {was}: {here}")
    if said["verdict"] not in {one.value for one in _GOOD_ENOUGH}:
        raise MoveError(f"--verified: {path} says that the copies are {said['verdict']}; see what differs, and why")
    return Verified(said["verdict"], said["ended"], envelope.sha256, part_of(said["asked"]))


def _servers(text: str) -> set[str]:
    return set(split_list(text))
