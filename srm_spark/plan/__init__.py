"""Guided moves of consumer groups: look at both clusters → a frozen plan → its stages, one after the other.

`Move.plan` changes nothing; `Move.apply` walks the stages of the plan and ends with a statement. Nothing here prints.
"""

from srm_spark.plan.move import Move
from srm_spark.plan.past import PastMove, last_failover, past_moves
from srm_spark.plan.snapshot import MoveKind, MoveOutcome, Plan, SitePlan, SiteStatement, Stage, Statement
from srm_spark.plan.switchover import Switchover
from srm_spark.plan.undo import PutBack, Undo

__all__ = [
    "Move",
    "MoveKind",
    "MoveOutcome",
    "PastMove",
    "Plan",
    "PutBack",
    "SitePlan",
    "SiteStatement",
    "Stage",
    "Statement",
    "Switchover",
    "Undo",
    "last_failover",
    "past_moves",
]
