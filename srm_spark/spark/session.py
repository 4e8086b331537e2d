"""The Spark session: the one that is there already, or an embedded one of our own.

A session that somebody else made keeps its settings: SQL settings go into a session of the flow's own, and what only a
restart could change (speculation) is refused with a message.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from srm_spark.config.checkpoint_files import checkpoint_settings
from srm_spark.config.secrets import SPARK_REDACTION_REGEX, SPARK_SETTINGS
from srm_spark.errors import SetupError
from srm_spark.jars import DELTA_SETTINGS, fetch, java_home, unfit_java_home
from srm_spark.jars.archive import archive_options
from srm_spark.python_workers import DAEMON, DAEMON_KEY
from srm_spark.spark.scratch import scratch
from srm_spark.spark.starting import sparing_the_jvm

log = logging.getLogger(__name__)

APP_NAME = "srm-spark"
ARCHIVE = "spark"
"""The name of the archive of classes that an embedded session loads."""
_CLASS_PATH = "spark.driver.extraClassPath"
_SITE_DECIDES = ("spark.ui.enabled", DAEMON_KEY)
"""Settings that are ours unless the spark-defaults.conf of SPARK_CONF_DIR says otherwise."""
_LOOPBACK = "127.0.0.1"
_OWN: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",  # it listens on every interface and asks for no login
    "spark.ui.showConsoleProgress": "false",
    # Driver and executors are one process: what they say to each other needs to be heard on no network.
    "spark.driver.host": _LOOPBACK,
    "spark.driver.bindAddress": _LOOPBACK,
    "spark.scheduler.mode": "FAIR",  # flows share the cores instead of queueing behind each other's batches
    "spark.speculation": "false",
    "spark.driver.memory": "2g",
    DAEMON_KEY: DAEMON,
    # Copying is about throughput, and G1 takes a tenth more CPU per record for shorter pauses.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",  # the tables are small, and Delta would read each in 50 tasks
    **SPARK_SETTINGS,
    **DELTA_SETTINGS,
}
LIGHT_SESSION: Mapping[str, str] = {
    # Where no record passes through the JVM its second compiler takes more of the cores than it can gain, and room for
    # new objects is memory that nobody needs: 650 MiB became 430.
    "spark.driver.extraJavaOptions": (
        f"{_OWN['spark.driver.extraJavaOptions']} -XX:TieredStopAtLevel=1 -XX:MaxNewSize=96m"
        # With one compiler a JVM reserves 48 MB for compiled code. Many flows fill them, and from then on it throws
        # code away and compiles it anew, with all of a core.
        " -XX:ReservedCodeCacheSize=240m"
    ),
}
"""For an embedded session whose tasks fetch records by themselves."""
_SPARK_REDACTION = "(?i)secret|password|token|access[.]?key"
"""Spark's default for `spark.redaction.regex`."""
_LOGIN = "kafka.sasl.jaas.config"
_FALLBACK_TASKS = 8
"""Tasks per batch where the session does not tell its parallelism (Spark Connect)."""


def open_session(
    jars: Iterable[Path] | None = None, settings: Mapping[str, str] | None = None
) -> tuple[SparkSession, bool]:
    """The session to run in, and whether it is ours to stop. Raises SetupError where it cannot be used.

    Only a session of our own takes `jars` (None: the driver's, downloaded when they are missing).
    """
    existing = SparkSession.getActiveSession() or _default_session()
    if existing is not None:
        check_session(existing)
        return existing, False
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need the same packages as the driver
    builder = SparkSession.builder.appName(APP_NAME)
    if "SPARK_REMOTE" not in os.environ and not _is_submitted():
        if unfit := unfit_java_home():
            log.warning("%s; Spark runs with the one at %s", unfit, java_home())
        os.environ["JAVA_HOME"] = str(java_home())  # Spark's scripts look nowhere else but on the PATH
        builder = builder.master("local[*]")
        site = _said_by_the_site()
        files = jar_settings(fetch("driver") if jars is None else jars, has_class_path=_CLASS_PATH in site)
        for key, value in {**_OWN, **checkpoint_settings(), **_in_scratch(), **files, **(settings or {})}.items():
            if key not in _SITE_DECIDES or key not in site:
                builder = builder.config(key, value)
    try:
        with sparing_the_jvm(), _keeping_our_interrupt():
            session = builder.getOrCreate()
    except Exception as error:
        raise SetupError(f"Spark does not start: {error}; run srm-driver doctor to see what is missing") from error
    check_session(session)
    return session, not _is_submitted()


def session(settings: Mapping[str, str] | None = None) -> SparkSession:
    """A Spark session for notebooks, ready for drivers and tables: with the jars, this Python and Delta.

    The session that is there already, as it is, or a new one with `settings` above our own. It is yours to stop.
    """
    return open_session(settings=settings)[0]


def jar_settings(jars: Iterable[Path], *, has_class_path: bool = False) -> dict[str, str]:
    """Settings by which an embedded session finds these jars: on its class path, unless that is a site's already.

    Spark loads `spark.jars` by a class loader of its own, whose classes no archive can hold, and copies each to itself.
    """
    paths = [str(jar) for jar in jars]
    return {"spark.jars": ",".join(paths)} if has_class_path else {_CLASS_PATH: os.pathsep.join(paths)}


def _in_scratch() -> dict[str, str]:
    """Settings by which a JVM of our own leaves no files behind, and says errors only unless a site wants more."""
    folder, logging_settings = scratch(), Path(__file__).with_name("log4j2.properties")
    options = " ".join(f'"{option}"' for option in (f"-Djava.io.tmpdir={folder}", *archive_options(ARCHIVE)))
    if _of_site(logging_settings.name) is None:
        options += f' "-Dlog4j2.configurationFile={logging_settings}"'
    return {"spark.local.dir": str(folder), "spark.driver.defaultJavaOptions": options}


def _of_site(name: str) -> Path | None:
    """A file of the folder that SPARK_CONF_DIR names, if it is there."""
    folder = os.environ.get("SPARK_CONF_DIR")
    path = Path(folder, name) if folder else None
    return path if path is not None and path.is_file() else None


def _said_by_the_site() -> set[str]:
    """The keys of its spark-defaults.conf."""
    path = _of_site("spark-defaults.conf")
    lines = [] if path is None else path.read_text(encoding="utf-8").splitlines()
    return {line.replace("=", " ").split()[0] for line in lines if line.strip() and not line.lstrip().startswith("#")}


@contextmanager
def _keeping_our_interrupt() -> Iterator[None]:
    """Put back who gets SIGINT: pyspark takes it for cancelling every job, and the batch in progress shall end."""
    if threading.current_thread() is not threading.main_thread():  # Python lets no other one set it, nor pyspark
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def listen_for_batches(session: SparkSession) -> None:
    """Open the socket by which Spark calls batch functions, before the clients of many flows are open.

    py4j waits for it with select(), which knows open files up to number 1,023 only.
    """
    if not is_connect(session):
        listen: Callable[[object], None] = ensure_callback_server_started
        listen(session.sparkContext._gateway)  # noqa: SLF001 - pyspark does the same for foreachBatch


def own_session(session: SparkSession) -> SparkSession:
    """A session on the same Spark application whose SQL settings can be changed without anybody noticing."""
    if not is_connect(session):
        return session.newSession()
    connect: Any = session
    try:
        clone: SparkSession = connect.cloneSession()
        clone.conf.set("spark.sql.session.timeZone", "UTC")  # the first call says whether the server can clone
    except Exception as error:
        log.warning("this Spark Connect server cannot clone a session, SQL settings change in the given one: %s", error)
        return session
    return clone


def release(own: SparkSession, given: SparkSession) -> None:
    """Let go of a session that `own_session` made of `given`: an open clone keeps a Connect client from ever ending."""
    if own is given or not is_connect(own):
        return
    clone: Any = own
    try:
        clone.client.release_session()
        clone.client.close()
    except Exception as error:
        log.warning("a clone of the Spark Connect session could not be released: %s", error)


def configure(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Change SQL settings; only of a session of our own."""
    for key, value in settings.items():
        session.conf.set(key, value)


def is_connect(session: SparkSession) -> bool:
    """Whether the session is a client of a Spark Connect server."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def end(session: SparkSession) -> None:
    """Stop a session of our own. What its tasks and workers say of being ended amid something is no news."""
    with suppress(Exception):
        session.sparkContext.setLogLevel("OFF")
    session.stop()


def is_alive(session: SparkSession) -> bool:
    """Whether Spark still answers: its JVM may end before us, or somebody else stops the session."""
    if is_connect(session):
        connect: Any = session
        return not connect.is_stopped
    try:
        parallelism(session)
    except Exception:  # Py4J has an exception for every way to die
        return False
    return True


def is_local(session: SparkSession) -> bool:
    """Whether the executors are threads of this machine, so that a folder here is the same for all."""
    if is_connect(session):
        return False
    master = session.sparkContext.master or ""
    return master == "local" or master.startswith("local[")


def lacks_delta(session: SparkSession) -> str | None:
    """What to do about a session that was started without Delta; None where it seems to have it.

    To be asked after a failure: platforms that bring Delta along do not show it.
    """
    if "delta" in _conf(session, "spark.sql.extensions", "").lower():
        return None
    settings = " ".join(f"--conf {key}={value}" for key, value in DELTA_SETTINGS.items())
    return f"this Spark session was started without Delta: start it with the jars of docs/running.md and {settings}"


def check_session(session: SparkSession) -> None:
    """Refuse a session in which records could be written twice or not be read at all."""
    if _conf(session, "spark.speculation", "false").lower() == "true":
        raise SetupError(
            "spark.speculation is on: Spark would run a task twice at the same time and write its records twice; "
            "start the session with spark.speculation=false"
        )
    regex = _conf(session, "spark.redaction.regex", _SPARK_REDACTION)
    if not _covers(regex, _LOGIN):
        log.warning(
            "spark.redaction.regex of this session (%s) does not cover %s: its value may show in Spark's UI and logs; "
            "start the session with spark.redaction.regex=%s",
            regex,
            _LOGIN,
            SPARK_REDACTION_REGEX,
        )


def check_connector(session: SparkSession) -> None:
    """Refuse a session that was started without Spark's Kafka source; asks no broker."""
    reader = session.readStream.format("kafka").option("kafka.bootstrap.servers", "nowhere:1")
    try:
        _ = reader.option("subscribe", "any").load().schema  # a Connect server looks only when it is asked
    except AnalysisException as error:
        raise SetupError(
            "this Spark session was started without the Kafka source: make it by srm_spark.session(), or start it with "
            "the jars that `python -m srm_spark.jars driver` prints, as spark.jars or --jars"
        ) from error


def _covers(regex: str, name: str) -> bool:
    try:
        return re.search(regex, name) is not None
    except re.error:
        return True  # Java knows constructs that Python does not


def parallelism(session: SparkSession) -> int:
    """How many tasks the application runs at a time."""
    if is_connect(session):
        return int(_conf(session, "spark.default.parallelism", str(_FALLBACK_TASKS)))
    return session.sparkContext.defaultParallelism


def _conf(session: SparkSession, key: str, default: str) -> str:
    try:
        return session.conf.get(key, default) or default
    except PySparkException:
        return default


def _default_session() -> SparkSession | None:
    # A notebook's session is the default one, and active only in the thread that made it.
    return getattr(SparkSession, "_instantiatedSession", None)


def _is_submitted() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ
