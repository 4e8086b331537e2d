"""Rows for the keys of a replication: MM2's three connectors, what SRM adds to them, and our own."""

from __future__ import annotations

from srm_spark.config.schema import Key, KeyEffect, Scope, ValueKind
from srm_spark.core.config_classes import ConfigClass

_H, _T, _C, _I, _R = KeyEffect.HONOURED, KeyEffect.TRANSLATED, KeyEffect.CHECKED, KeyEffect.IGNORED, KeyEffect.REFUSED
_TOP, _CON, _FLOW = Scope.TOP, Scope.CONNECTOR, Scope.FLOW
_SECONDS = 10**9
_LONG = 2**63 - 1
_RF = 2**15 - 1
_MIRROR = "org.apache.kafka.connect.mirror."

CONFIG_EXCLUDE = (
    "follower.replication.throttled.replicas,leader.replication.throttled.replicas,"
    "message.timestamp.difference.max.ms,log.message.timestamp.before.max.ms,log.message.timestamp.after.max.ms,"
    "message.timestamp.type,unclean.leader.election.enable,min.insync.replicas"
)


def _flag(name: str, default: str, does: str, effect: KeyEffect = _H) -> Key:
    return Key(name, ValueKind.BOOL, default, _CON, effect, does, allowed=("true", "false"))


def _number(name: str, default: str, low: int, does: str, effect: KeyEffect = _H, *, high: int = _LONG) -> Key:
    return Key(name, ValueKind.INT, default, _CON, effect, does, low=low, high=high)


def _interval(name: str, default: str, does: str, effect: KeyEffect = _C, srm: str | None = None) -> Key:
    return Key(name, ValueKind.INT, default, _CON, effect, does, srm_default=srm, low=1, high=_SECONDS, off=True)


def _factor(name: str, default: str, does: str, effect: KeyEffect = _H) -> Key:
    return Key(name, ValueKind.INT, default, _CON, effect, f"{does}; -1 takes the broker's default", low=-1, high=_RF)


def _text(name: str, default: str | None, does: str, effect: KeyEffect = _I, kind: ValueKind = ValueKind.TEXT) -> Key:
    return Key(name, kind, default, _CON, effect, does)


METRIC_NAMES_KEY = "metric.names.formats"
_OWN_POLICY = "Names remote topics; one of your own is a Python class, `package.module:Class`."
_OWN_FILTER = (
    "A filter of your own is a Python class: `package.module:Class`, a subclass of `srm_spark.filters.NameFilter`."
)
TRANSFORMS = ("transforms", "predicates")
TRANSFORMS_IGNORE = "transforms.ignore"
_SMT = "Connect's transforms are Java classes, which cannot run here; `transforms.ignore` passes them over."
_CONVERTER = "records are copied as bytes, whatever the converter"

SOURCE = (
    _flag("enabled", "false", "Turns the flow on."),
    Key(
        "topics",
        ValueKind.REGEXES,
        ".*",
        _CON,
        _H,
        "Topics that flow, with those of `srm-control topics --add`; each expression must match the whole name.",
        "",
    ),
    Key("topics.exclude", ValueKind.REGEXES, r"mm2.*\.internal,.*\.replica,__.*", _CON, _H, "Topics that never flow."),
    _text("topics.blacklist", None, "Old name of `topics.exclude`, used where that is not set.", _T, ValueKind.REGEXES),
    _text("topic.filter.class", f"{_MIRROR}DefaultTopicFilter", _OWN_FILTER, _T, ValueKind.CLASS),
    Key("config.properties.exclude", ValueKind.REGEXES, CONFIG_EXCLUDE, _CON, _H, "Topic configs that are not copied."),
    _text("config.properties.blacklist", None, "Old name of `config.properties.exclude`.", _T, ValueKind.REGEXES),
    _text(
        "config.property.filter.class",
        f"{_MIRROR}DefaultConfigPropertyFilter",
        _OWN_FILTER,
        _T,
        ValueKind.CLASS,
    ),
    Key(
        "use.defaults.from",
        ValueKind.TEXT,
        "target",
        _FLOW,
        _H,
        "Whose defaults a new remote topic has where the source topic sets nothing.",
        allowed=("target", "source"),
    ),
    _flag("refresh.topics.enabled", "true", "Looks for new and changed topics while running."),
    _interval("refresh.topics.interval.seconds", "5", "How often topics are looked for (MM2: 600).", _H, "5"),
    _flag("sync.topic.configs.enabled", "true", "Keeps the configs of existing remote topics equal."),
    _interval("sync.topic.configs.interval.seconds", "600", "How often topic configs are compared.", _H),
    _flag("sync.topic.acls.enabled", "true", "Gives remote topics the ACLs of their source topics, but for WRITE."),
    _interval("sync.topic.acls.interval.seconds", "600", "How often ACLs are copied.", _H),
    _factor("replication.factor", "2", "Replication factor of new remote topics"),
    _factor("offset-syncs.topic.replication.factor", "3", "Replication factor of the offset-syncs topic"),
    Key(
        "offset-syncs.topic.location",
        ValueKind.TEXT,
        "source",
        _CON,
        _H,
        "On which cluster the offset-syncs topic lives.",
        allowed=("source", "target"),
    ),
    _number("offset.lag.max", "100", 0, "Most records between two offset syncs; 0 syncs every record."),
    _flag("emit.offset-syncs.enabled", "true", "Writes offset syncs."),
    _flag("heartbeats.replication.enabled", "true", "Replicates heartbeats topics whatever the topic filter says."),
    _text(
        METRIC_NAMES_KEY,
        "legacy",
        "How MM2's metrics are called at `driver.metrics.listener`: `legacy`, `new` (KIP-1280), or both.",
        _H,
        ValueKind.LIST,
    ),
    _number("consumer.poll.timeout.ms", "1000", 0, "Spark fetches; nothing polls.", _I),
    Key("tasks.max", ValueKind.INT, None, _CON, _H, "Most tasks of one batch; unset takes the session's.", low=1),
    _flag("tasks.max.enforce", "true", "`tasks.max` is always an upper bound here.", _I),
    _number("admin.timeout.ms", "60000", 1, "Longest wait for one administrative call.", high=2**31 - 1),
    _text("replication.policy.class", f"{_MIRROR}DefaultReplicationPolicy", _OWN_POLICY, _H, ValueKind.CLASS),
    _text("replication.policy.separator", ".", "Stands between alias and topic in a remote name.", _H),
    _flag("replication.policy.internal.topic.separator.enabled", "true", "Uses the separator in internal names too."),
    _text(
        "forwarding.admin.class",
        "org.apache.kafka.clients.admin.ForwardingAdmin",
        "Topics are made by srm-spark itself.",
        _R,
        ValueKind.CLASS,
    ),
)

CHECKPOINT = (
    Key(
        "groups",
        ValueKind.REGEXES,
        ".*",
        _CON,
        _H,
        "Consumer groups whose offsets are translated, with those that `srm-control groups --add` names.",
        "",
    ),
    Key("groups.exclude", ValueKind.REGEXES, "console-consumer-.*,connect-.*,__.*", _CON, _H, "Groups left alone."),
    _text("groups.blacklist", None, "Old name of `groups.exclude`.", _T, ValueKind.REGEXES),
    _text("group.filter.class", f"{_MIRROR}DefaultGroupFilter", _OWN_FILTER, _H, ValueKind.CLASS),
    _flag("refresh.groups.enabled", "true", "Looks for new groups while running."),
    _interval("refresh.groups.interval.seconds", "5", "How often groups are looked for (MM2: 600).", _H),
    _flag("emit.checkpoints.enabled", "true", "Writes checkpoints."),
    _interval("emit.checkpoints.interval.seconds", "5", "How often groups are asked where they stand (MM2: 60).", _H),
    _flag("sync.group.offsets.enabled", "false", "Commits translated offsets on the target."),
    _interval("sync.group.offsets.interval.seconds", "5", "How often translated offsets are committed (MM2: 60).", _H),
    _factor("checkpoints.topic.replication.factor", "3", "Replication factor of the checkpoints topic"),
)

HEARTBEAT = (
    _flag("emit.heartbeats.enabled", "true", "Writes heartbeats, for pairs that are not enabled too."),
    _interval("emit.heartbeats.interval.seconds", "1", "How often a heartbeat is written.", _H, "5"),
    _factor("heartbeats.topic.replication.factor", "3", "Replication factor of the heartbeats topic"),
)

COMMON = (
    _text("name", None, "First element of the keys in the progress topic; MM2's connector name.", _H),
    _text("connector.class", None, "srm-spark runs no Connect.", _I, ValueKind.CLASS),
    _text("connector.plugin.version", None, "srm-spark runs no Connect."),
    _text("source.cluster.alias", None, "The flow's own name says it."),
    _text("target.cluster.alias", None, "The flow's own name says it."),
    _text("metric.reporters", None, "Java classes; they do not run here.", _I, ValueKind.LIST),
    _text("config.providers", None, "Names of providers besides `env`, `file` and `dir`.", _H, ValueKind.LIST),
    _text("config.action.reload", "restart", "A reload is asked for by SIGHUP."),
    *(_text(name, None, _SMT, _R, ValueKind.LIST) for name in TRANSFORMS),
    *(_text(f"{part}.converter", None, _CONVERTER, _I, ValueKind.CLASS) for part in ("key", "value", "header")),
    *(_text(f"{part}.converter.plugin.version", None, _CONVERTER) for part in ("key", "value", "header")),
    _number("errors.retry.timeout", "0", -1, "Failed flows are retried; see `flow.retry.count`.", _I),
    _number("errors.retry.delay.max.ms", "60000", -1, "Failed flows are retried; see `flow.retry.delay.ms`.", _I),
    Key(
        "errors.tolerance",
        ValueKind.TEXT,
        "none",
        _CON,
        _H,
        "`all`: the default of `refused.record.policy` is `park`. Connect would drop such a record.",
        allowed=("none", "all"),
    ),
    _flag("errors.log.enable", "false", "Errors are always logged.", _I),
    _flag("errors.log.include.messages", "false", "Records are never logged.", _I),
)

PROVENANCE_KEY = "provenance.header.enabled"
INTERNAL_KEY = "srm.internal.topic.exclude.enable"
SOURCE_OFFSET_KEY = "copy.source.offset.in.header.enabled"
_EOS = "Every pass of a task is one transaction; see `batch.max.bytes`."

FLOW_ONLY = (
    Key(
        "exactly.once.support",
        ValueKind.TEXT,
        "requested",
        _FLOW,
        _H,
        "`required`: this flow is exactly-once whatever `exactly.once.source.support` says.",
        allowed=("requested", "required"),
    ),
    Key("transaction.boundary", ValueKind.TEXT, "poll", _FLOW, _I, _EOS),
    Key("transaction.boundary.interval.ms", ValueKind.INT, None, _FLOW, _I, _EOS, low=1),
    Key("offsets.storage.topic", ValueKind.TEXT, None, _FLOW, _I, "Set `offset.storage.topic` on the target instead."),
)

SRM_CONNECTOR = (
    _number("connect.start.task.timeout.ms", "60000", 0, "srm-spark runs no Connect tasks.", _I),
    _flag("disable.source.topic.auto.creation", "true", "No client of srm-spark ever creates a topic by asking.", _I),
    _flag(
        SOURCE_OFFSET_KEY,
        "false",
        f"`true`: the default of `{PROVENANCE_KEY}`, whose header says the source offset beside other things.",
    ),
    _flag(
        INTERNAL_KEY,
        "true",
        "`false`: topics whose names begin with `__` or `.` flow, too, where `topics` takes them and `topics.exclude` "
        "(by default with `__.*` in it) does not name them. Those of brokers (`__consumer_offsets` and the like) and "
        "of the replication never do: the ones cannot be written, the others would be copied again without end.",
    ),
    _flag(
        "cloudera.reverse.checkpointing.enabled",
        "true",
        "Groups that read remote topics of the target are translated back to the topics there (SRM: false).",
    ),
)

RECREATED_KEY = "source.recreated.policy"
RENAMED_KEY = "target.renamed.policy"
LOSS_POLICIES = (
    ("source.truncated.policy", "resume", "The source deleted records that were not replicated yet."),
    (
        "source.diverged.policy",
        "resume",
        "The source lost records that were replicated, without deleting them: `resume` goes on where it differs.",
    ),
    (
        RECREATED_KEY,
        "resume",
        "A source topic was created anew: `resume`, or `new-generation`, starts at its beginning, behind the old "
        "copies in the same remote topic, with a map of its own.",
    ),
    ("target.changed.policy", "resume", "A remote topic was truncated or created anew."),
    (
        RENAMED_KEY,
        "stop",
        "The replication policy has another name for a remote topic than before: `resume` goes on under it, `recopy` "
        "copies everything the source has; what was copied stays under the old name.",
    ),
    ("foreign.writer.policy", "stop", "Somebody else writes to a remote topic."),
)
"""Key, default, the case: `stop` holds the topic with its reason, `resume` goes on and reports what is lost."""


def _choices(policy: str) -> tuple[str, ...]:
    more = {RECREATED_KEY: ("new-generation",), RENAMED_KEY: ("recopy",)}
    return ("stop", "resume", *more.get(policy, ()))


MODE_KEY = "mode"
OVERRIDES_KEY = "target.override.policy"
SOURCE_ID_KEY = "flow.source.cluster.id"
CONFIG_CLASS_DOCS = {
    ConfigClass.ALWAYS: "that remote topics always have as they are in force on the source topic, its default, too",
    ConfigClass.USUALLY: "that are copied where the source topic sets them",
    ConfigClass.NEVER: "that are never copied, whatever else matches",
}
ACL_PATTERNS_KEY = "sync.topic.acls.patterns.enabled"
ACL_REMOVAL_KEY = "sync.topic.acls.removal.enabled"
ACL_WRITE_KEY = "sync.topic.acls.write.policy"
ACL_PRINCIPALS_KEY = "sync.topic.acls.principal.mapping.rules"
GROUP_ACLS_KEY = "sync.group.acls.enabled"
QUOTAS_KEY = "sync.user.quotas.enabled"
REALTIME_TOPICS_KEY = "realtime.topics"

OWN = (
    Key(
        "control.topic.replication.factor",
        ValueKind.INT,
        None,
        _CON,
        _H,
        "Replication factor of the topic with the lists of `srm-control`; unset: as the progress topic's. -1 takes the "
        "broker's default",
        low=-1,
        high=_RF,
    ),
    _flag(
        TRANSFORMS_IGNORE, "false", "`true` passes over `transforms` and `predicates`: records are copied unchanged."
    ),
    _number("flow.retry.count", "-1", -1, "Failed starts in a row before a flow is given up; -1: never."),
    _flag(
        "flow.spread.enabled",
        "true",
        "Of several drivers that run the same file, one with more to do gives the flow to one that stands by and has "
        "less. `false`: a flow stays where it is until its driver ends, or is drained.",
    ),
    _text(
        SOURCE_ID_KEY,
        "",
        "Kafka's id of the source cluster: a driver whose `bootstrap.servers` lead to another one copies nothing. "
        "Unset: the one that the flow was copied from before; so set it where the source was built anew.",
        _H,
    ),
    _number("flow.retry.delay.ms", "10000", 0, "Pause before a failed flow starts again.", high=2**31 - 1),
    Key(
        OVERRIDES_KEY,
        ValueKind.TEXT,
        "keep",
        _CON,
        _H,
        "What becomes of a config that somebody set on a remote topic, and that the source has at its default: `reset` "
        "takes it back, as MM2 does.",
        allowed=("keep", "reset"),
    ),
    *(
        _text(
            one.key,
            "",
            f"Topic configs {doc}; before `config.properties.exclude` and the filter class.",
            _H,
            ValueKind.REGEXES,
        )
        for one, doc in CONFIG_CLASS_DOCS.items()
    ),
    _flag(
        ACL_PATTERNS_KEY,
        "false",
        "Copies ACLs for prefixes and for `*`, too, as prefixes of remote topics, where the policy puts the source's "
        "alias in front; of what they allow only reading.",
    ),
    _flag(GROUP_ACLS_KEY, "false", "Copies the ACLs of groups that the flow takes, too."),
    _flag(
        ACL_REMOVAL_KEY,
        "false",
        "Removes ACLs that were copied here, and only these, once the source has them no more.",
    ),
    _flag(
        QUOTAS_KEY,
        "false",
        "Gives users on the target the quotas that they have on the source; what somebody else set there stays.",
    ),
    _interval("sync.user.quotas.interval.seconds", "600", "How often quotas are compared.", _H),
    _text(
        ACL_PRINCIPALS_KEY,
        "DEFAULT",
        "How users of the source's ACLs and quotas are called on the target: rules as of Kafka's "
        "`ssl.principal.mapping.rules`, `RULE:pattern/replacement/[LU]` or `DEFAULT`; the first that matches decides, "
        "and an ACL that none has a name for is not copied: `*` and an empty one are none.",
        _H,
    ),
    Key(
        ACL_WRITE_KEY,
        ValueKind.TEXT,
        "never",
        _CON,
        _H,
        "ACLs that allow to write: `failover` keeps them recorded on the target, `srm-control failover` puts them in "
        "force there, and `failback` takes them back.",
        allowed=("never", "failover"),
    ),
    _flag(
        "sync.group.offsets.rewinds.enabled", "false", "A group that rewound on the source is set back on the target."
    ),
    _flag(
        PROVENANCE_KEY,
        "false",
        "Copies carry a record header `srm-provenance` that says where they were first written, and go to no cluster "
        "where they have been. Needed in all flows of a ring that keeps topic names.",
    ),
    _number("batch.max.records", "1000000", 1, "Source offsets per micro-batch, all partitions together."),
    _number("batch.max.bytes", "2147483648", 1024, "Bytes that one pass writes before progress is committed."),
    Key(
        "bandwidth.limit.bytes",
        ValueKind.INT,
        None,
        Scope.FLOW_AND_TARGET,
        _H,
        "Most bytes per second, of batches as they travel: `A->B.` of this flow, `B.` of all flows of the process into "
        "B together; unset: no limit.",
        low=1024,
        high=_LONG,
    ),
    Key(
        "rpo.goal.seconds",
        ValueKind.INT,
        None,
        _CON,
        _H,
        "How many seconds of data a failover may lose at most: shown beside what it would lose now, and more is an "
        "alert (docs/service.md). Unset: `service.alerts.rpo.seconds` for alerts, and no goal elsewhere.",
        low=1,
        high=_SECONDS,
    ),
    Key(
        "rto.goal.seconds",
        ValueKind.INT,
        None,
        _CON,
        _H,
        "How many seconds a failover may take at most, from its first call to its statement: in the statement, beside "
        "what the last one took on the service's pages, and more is an alert (docs/service.md). Unset: no goal.",
        low=1,
        high=_SECONDS,
    ),
    _interval(
        "audit.interval.seconds",
        "-1",
        "How often the driver compares what it has copied since the last time with its source, record by record; with "
        "0 or less never (docs/verify.md).",
        _H,
    ),
    _number(
        "audit.limit.bytes",
        "10000000",
        0,
        "Most bytes per second that this reads, of both clusters together; 0: no limit. It has to be more than "
        "four times what the flow copies, or audits never catch up.",
    ),
    _text(
        "priority.high.topics",
        "",
        "Source topics whose records go before all others under a limit, whatever else matches.",
        _H,
        ValueKind.REGEXES,
    ),
    _text("priority.low.topics", "", "Source topics whose records go last under a limit.", _H, ValueKind.REGEXES),
    _flag(
        "compiled.loop.enabled",
        "true",
        "Executors fetch batches by themselves, and take them apart by compiled loops, where numba is installed; else "
        "Spark's own source reads the records, and librdkafka in the real-time lane.",
    ),
    _number(
        "driver.pass.max.bytes",
        "1048576",
        0,
        "What is new is copied by the driver itself while it is no more than so many bytes and 10,000 records: a Spark "
        "job would take longer. Until Spark is there it copies whatever there is. With 0 the executors copy "
        "everything.",
    ),
    _number("arrow.max.records", "10000", 1, "Records of one Arrow batch between Spark and Python.", high=2**31 - 1),
    # Arrow doubles its buffers, outside of the heap: a task takes about four times as much, and a default session has
    # 1 GB for all of its tasks.
    _number("arrow.max.bytes", "16777216", 1024, "Bytes of one Arrow batch; bounds the memory of a task."),
    *(
        Key(name, ValueKind.TEXT, default, _CON, _H, doc, allowed=_choices(name))
        for name, default, doc in LOSS_POLICIES
    ),
    Key(
        "refused.record.policy",
        ValueKind.TEXT,
        "hold",
        _CON,
        _H,
        "A record that the target would refuse, or that Spark's source cannot read: `hold` lets its partition wait, "
        "`park` puts it into quarantine and goes on, `fix` moves a timestamp inside the target's limits and holds "
        "otherwise.",
        allowed=("hold", "park", "fix"),
    ),
    *(
        _text(
            f"policy.{policy}.topics",
            "",
            f"Source topics whose `refused.record.policy` is `{policy}`{wins}.",
            _H,
            ValueKind.LIST,
        )
        for policy, wins in (("hold", ", whatever else matches"), ("park", ""), ("fix", ""))
    ),
    *(
        _text(f"topics.start.{at}", "", f"Source topics that begin {where}{wins}.", _H, ValueKind.LIST)
        for at, where, wins in (
            ("earliest", "at their first record when they are copied for the first time", ", whatever else matches"),
            ("timestamp", "at `topics.start.time` then", ""),
            ("latest", "at their end then: what was written before the flow found them is never copied", ""),
        )
    ),
    _text("topics.start.time", None, "Where the topics of `topics.start.timestamp` begin: 2026-01-31T12:00:00Z.", _H),
    _text("policy.stop.topics", "", "Source topics for which all of these policies are `stop`.", _H, ValueKind.LIST),
    _text("policy.resume.topics", "", "Source topics for which they are all `resume`.", _H, ValueKind.LIST),
    _text(
        "state.path",
        None,
        "Folder or URI of the tables for SQL and notebooks; unset: one in the temporary folder of this machine, "
        "empty: no tables.",
        _H,
    ),
    Key(
        "state.interval.seconds",
        ValueKind.INT,
        None,
        _CON,
        _H,
        "How often these tables are brought up to date; unset: 60, and 600 where topics are copied in real time.",
        low=1,
        high=_SECONDS,
    ),
    Key(
        MODE_KEY,
        ValueKind.TEXT,
        "micro-batch",
        _CON,
        _H,
        "`realtime` copies records as they come, by tasks that last (docs/realtime.md).",
        allowed=("micro-batch", "realtime"),
    ),
    _text(
        REALTIME_TOPICS_KEY,
        "",
        "Source topics for which `mode=realtime` is meant, the others go in micro-batches beside them; empty: all.",
        _H,
        ValueKind.LIST,
    ),
    _number(
        "trigger.interval.ms",
        "200",
        0,
        "Shortest time between the starts of two micro-batches; 0: as fast as they come. One takes some 60 ms of a "
        "core, however little it copies (docs/performance.md).",
    ),
)
