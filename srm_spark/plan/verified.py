"""What was found by content before groups move, as a signed statement says it."""

from __future__ import annotations

from pathlib import Path

from srm_spark.core.envelope import Predicate
from srm_spark.core.model import Flow
from srm_spark.errors import MoveError, StatementRefused
from srm_spark.plan.snapshot import Verified
from srm_spark.statements import Seal, check_statement


def read_verified(path: Path, seal: Seal, flow: Flow) -> Verified:
    """The statement of a verification of `flow` that the same key has signed. Raises MoveError for any other file."""
    try:
        envelope, found = check_statement(path, seal.key.public)
    except StatementRefused as error:
        raise MoveError(f"--verified: {error}; make it with srm-control verify --statement, by the same key") from None
    said = found["predicate"]
    if found["predicateType"] != Predicate.VERIFICATION.value or said["flow"] != str(flow):
        about = f"{found['predicateType']} of {said['flow']}"
        raise MoveError(f"--verified: {path} is {about}, not the verification of {flow}")
    return Verified(said["verdict"], said["ended"], envelope.sha256)
