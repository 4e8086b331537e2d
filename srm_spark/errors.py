"""The exceptions of srm-spark. Every message says what happened, where, and what to do.

SrmError
├── ConfigError                 the file is wrong: every problem at once, nothing was touched
├── SetupError                  this machine or session cannot run a driver (Java, jars, speculation)
├── SessionEnded                Spark is gone; only a new driver process helps
├── CodecError                  bytes are not the record they should be, or a value cannot be written as one
│   └── ActNotUnderstood        a change of lists that only another version can read: nobody knows the lists without it
├── PatternError                a Java regular expression that cannot be used here
├── PluginError                 a class that the configuration names cannot be loaded or cannot work
├── StateFailed                 a table for SQL and notebooks cannot be written or read; flows run on without it
├── ProtocolUnavailable         a request that only tells more was not answered; what it would tell stays unknown
│   └── FenceUnavailable        the target gives a flow no producer id of its own: older writers can only be waited for
├── NotWritten                  a control topic did not acknowledge a record that its flow's author wrote
├── OffsetFileError             a file of offsets that is none of the known formats
├── MoveError                   a guided move cannot begin: its flow is not configured, its state file is another's
├── PlanError                   a plan cannot be applied: its file is none, or the world is not the one it was made from
├── VerificationStateError      a state file of verify is another flow's, is none, or cannot be written
├── StatementRefused            a signed statement is none, was changed, or somebody else has signed it
├── SigningFailed               a statement cannot be signed or kept: its key cannot be used, its file not written
└── FlowError                   one flow cannot go on; the driver retries it, the other flows run on
    ├── SourceUnavailable       the source cluster does not answer or refuses us
    │   └── SourceDenied        it does not let us read some topics
    ├── QueryFailed             Spark ended a query or a job
    ├── SourceChanged           a source topic is gone, created anew, or went back: the flow looks at its topics again
    ├── TargetChanged           a remote topic is gone, or went back: the flow looks at both sides again
    ├── TargetUnavailable       the target cluster does not answer or refuses us
    ├── HeaderNameUnfit         the client library cannot read the name of a record's header
    ├── TargetWriteFailed       records were not acknowledged by the target
    ├── OffsetSyncFailed        the offset-syncs topic refused a record
    ├── CheckpointFailed        the checkpoints topic refused a record
    ├── ProgressFailed          the progress topic refused a record: the batch will be found again at the next start
    ├── LeaseHeld               another driver owns the flow, and waiting was not wanted
    ├── LeaseLost               another driver owns the flow now
    └── AnotherSource           its drivers copy from another source cluster than this one would
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from srm_spark.failure import Failing, FailureKind


class SrmError(Failing):
    """Base of everything that srm-spark raises on purpose."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in a configuration, printed as `file:line key — got — allowed — hint`."""

    location: str
    """`file:line`, `-D` for an override, or the file alone where no line applies."""
    key: str
    """Empty where it is the file as a whole."""
    message: str
    """What was found and what is allowed."""
    hint: str = ""
    """What to do: a did-you-mean, a command, an example."""

    def __str__(self) -> str:
        text = ": ".join(filter(None, (self.location, self.key, self.message)))
        return f"{text} — {self.hint}" if self.hint else text


class ConfigError(SrmError):
    """The configuration cannot be used; `problems` holds every reason found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class SetupError(SrmError):
    """The machine or Spark session lacks something."""

    def __init__(self, found: str, remedy: str = "") -> None:
        self.found = found
        self.remedy = remedy
        super().__init__("; ".join(filter(None, (found, remedy))))


class SessionEnded(SrmError):
    """Spark does not answer any more."""


class CodecError(SrmError):
    """Bytes of an internal topic are not the record they should be, or a value cannot be written as one."""


class ActNotUnderstood(CodecError):
    """A change of lists was written by a newer srm-spark, or has an entry that cannot be used here."""


class PatternError(SrmError):
    """A regular expression of a filter cannot be used; names the pattern, the construct, where it begins (the first
    character is 1; None where that is not known) and a rewrite."""

    def __init__(self, pattern: str, construct: str, rewrite: str, character: int | None = None) -> None:
        self.pattern = pattern
        self.construct = construct
        self.rewrite = rewrite
        self.character = character
        super().__init__(pattern, construct, rewrite, character)

    def __str__(self) -> str:
        where = "" if self.character is None else f", at character {self.character}"
        return f"pattern {self.pattern!r}: {self.construct}{where} — {self.rewrite}"


class PluginError(SrmError):
    """A class that the configuration names (policy, filter, resolver) cannot be loaded or cannot work."""

    def __init__(self, key: str, got: str, message: str, hint: str) -> None:
        self.key = key
        self.message = message
        self.hint = hint
        super().__init__(f"{key} = {got}: {message}; {hint}")


class StateFailed(SrmError):
    """A table that is kept for SQL and notebooks cannot be written or read; no record depends on it."""


class ProtocolUnavailable(SrmError):
    """A request of `kafka.protocol` was not answered, or this login cannot be made there."""


class FenceUnavailable(ProtocolUnavailable):
    """The target gives a flow no producer id under a transactional id; what it would refuse must be waited for."""

    def __init__(self, message: str, *, may_pass: bool = False) -> None:
        """`may_pass`: its coordinator is not there, now or never."""
        super().__init__(message)
        self.may_pass = may_pass


class NotWritten(SrmError):
    """Control records of a flow's author were not acknowledged; why, and what to do."""

    def __init__(self, message: str, *, is_spent: bool = False) -> None:
        """`is_spent`: nobody knows what is there, so this author can write no more to that partition."""
        super().__init__(message)
        self.is_spent = is_spent


class OffsetFileError(SrmError):
    """A file of offsets that were kept outside of Kafka is none of the known formats."""


class MoveError(SrmError):
    """A guided move cannot begin, or cannot write down where it stands; nothing was moved."""


class PlanError(SrmError):
    """A plan of changes cannot be applied or written down; nothing was changed because of it."""


class VerificationStateError(SrmError):
    """How far a verification came cannot be read or written down; the next one would begin elsewhere."""


class StatementRefused(SrmError):
    """A file is no statement that the key has signed; nothing that it says is to be believed."""


class SigningFailed(SrmError):
    """A statement cannot be signed: its key is not there, is another kind of key, or does not open."""


class FlowError(SrmError):
    """Something stopped one flow; it is retried."""


class ClientRefused(FlowError):
    """The client library does not take what the settings of a cluster make of a client."""


class SourceUnavailable(FlowError):
    """The source cluster does not answer or refuses the credentials."""

    kind = FailureKind.SOURCE_AWAY


class SourceDenied(SourceUnavailable):
    """The source does not let us read `topics`."""

    kind = FailureKind.SOURCE_DENIED

    def __init__(self, message: str, topics: Sequence[str]) -> None:
        super().__init__(message)
        self.topics = tuple(topics)


class QueryFailed(FlowError):
    """A query or a lasting job ended by itself; the kind is that of what ended it."""

    def __init__(self, message: str, kind: FailureKind) -> None:
        super().__init__(message)
        self.kind = kind


class SourceChanged(FlowError):
    """A source topic is gone, another one has its name now, or its log has lost records that were replicated."""

    kind = FailureKind.SOURCE_CHANGED


class TargetChanged(FlowError):
    """A remote topic ends before the last copy that was recorded."""

    kind = FailureKind.TARGET_CHANGED


class TargetUnavailable(FlowError):
    """The target cluster does not answer or refuses the credentials."""

    kind = FailureKind.TARGET_AWAY


class HeaderNameUnfit(FlowError):
    """A record has a header whose name this version of the client library cannot read."""

    kind = FailureKind.HEADER_NAME


class TargetWriteFailed(FlowError):
    """Records were not acknowledged by the target."""

    kind = FailureKind.WRITE_REFUSED


class OffsetSyncFailed(FlowError):
    """The offset-syncs topic refused a record."""

    kind = FailureKind.NOT_RECORDED


class CheckpointFailed(FlowError):
    """The checkpoints topic refused a record."""

    kind = FailureKind.NOT_RECORDED


class ProgressFailed(FlowError):
    """The progress topic refused a record."""

    kind = FailureKind.NOT_RECORDED


class LeaseHeld(FlowError):
    """Another driver owns the flow, and this one was told not to wait."""

    kind = FailureKind.LEASE_HELD


class LeaseLost(FlowError):
    """Another driver took over the flow."""

    kind = FailureKind.LEASE_LOST


class AnotherSource(FlowError):
    """The flow's drivers copy from another cluster than the one that this driver calls its source."""

    kind = FailureKind.ANOTHER_SOURCE
