"""Secrets appear nowhere: logs, process arguments, files, Spark's UI. And a running srm-driver reads its file again."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from srm_spark.cli.control import main
from srm_spark.config import load_settings
from srm_spark.config.rights import rights_of_flow
from srm_spark.config.secrets import SPARK_SETTINGS
from tests.awaiting import await_until
from tests.broker.mirror import SOON, assert_copied, write_config
from tests.broker.process import srm_driver
from tests.broker.secured import PASSWORD, Acl, SecuredKafka, Stores, make_stores, secured_kafka
from tests.kafka_io import Kafka, numbered

pytestmark = pytest.mark.slow

USER, USER_PASSWORD, WRONG_PASSWORD = "ann", "ann-Hush-1", "wrong-Hush-2"
START_SECONDS = 240.0
LOG4J = """\
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = console
# Of its own, because spark.log.level decides about the root logger only.
logger.apache.name = org.apache
logger.apache.level = info
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


@dataclass(frozen=True)
class Running:
    """A driver with three flows: two work, one of them with an encrypted key, the third has a wrong password."""

    process: subprocess.Popen[bytes]
    folder: Path
    config: Path
    kafka: Kafka
    secrets: tuple[str, ...]
    topic: str
    flow: str

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return (self.folder / "driver.log").read_text(errors="replace")

    def found_in(self, text: str) -> list[str]:
        """The secrets that a text gives away."""
        return [secret for secret in self.secrets if secret in text]


def _keys(stores: Stores, a: str, b: str, pem: str, wrong: str) -> dict[str, str]:
    def plain(password: str) -> str:
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        return f'{module} required username="{USER}" password="{password}";'

    store = {"type": "PKCS12", "password": PASSWORD}
    login = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        **{f"ssl.truststore.{name}": value for name, value in store.items()},
        "ssl.truststore.location": stores.path("trust.p12"),
    }
    mutual = {
        "security.protocol": "SSL",
        **{f"ssl.{kind}store.{name}": value for kind in ("key", "trust") for name, value in store.items()},
        "ssl.keystore.location": stores.path("client.p12"),
        "ssl.key.password": PASSWORD,
        "ssl.truststore.location": stores.path("trust.p12"),
    }
    encrypted = {name: value for name, value in mutual.items() if not name.startswith("ssl.keystore.")}
    encrypted |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": stores.path("client.pem")}
    return {
        **{f"{alias}.{name}": value for alias in (a, wrong) for name, value in login.items()},
        **{f"{pem}.{name}": value for name, value in encrypted.items()},
        f"{a}.sasl.jaas.config": plain(USER_PASSWORD),
        f"{wrong}.sasl.jaas.config": plain(WRONG_PASSWORD),
        **{f"{b}.{name}": value for name, value in mutual.items()},
        "flow.retry.delay.ms": "3000",
        "admin.timeout.ms": "5000",
    }


def _allow(broker: SecuredKafka, config: Path) -> None:
    for flow in load_settings([config]).flows:
        for right in rights_of_flow(flow):
            principal = "CN=client" if right.alias in ("b-hush", "pem-hush") else USER
            broker.allow(principal, [Acl(right.operation, right.kind, right.name)])


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "temporary").mkdir()
    (folder / "conf").mkdir()
    # As with thousands of topics: tasks are handed out by files.
    defaults = "spark.broadcast.UDFCompressionThreshold 100\nspark.ui.enabled true\n"
    (folder / "conf" / "spark-defaults.conf").write_text(defaults)
    stores = make_stores(folder)
    (folder / "conf" / "log4j2.properties").write_text(LOG4J)
    a, b, pem, wrong = "a-hush", "b-hush", "pem-hush", "wrong-hush"
    flow = f"{a}->{b}"
    with ExitStack() as stack:
        broker = stack.enter_context(secured_kafka("secrets", stores, users={USER: USER_PASSWORD}))
        clusters = {a: broker.at("PLAIN"), b: broker.at("MTLS"), pem: broker.at("MTLS"), wrong: broker.at("PLAIN")}
        flows = [flow, f"{pem}->{b}", f"{wrong}->{b}"]
        keys = {**_keys(stores, a, b, pem, wrong), "topics": "secret-.*"}
        later = {**keys, "topics": "secret-.*, late-.*"}
        _allow(broker, write_config(folder / "rights.properties", clusters, flows, later))
        kafka = broker.kafka
        kafka.create("secret-t")
        kafka.write("secret-t", numbered(50))
        environment = {
            "TMPDIR": str(folder / "temporary"),
            "SPARK_CONF_DIR": str(folder / "conf"),
            "SPARK_LOCAL_DIRS": str(folder / "temporary"),
            "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={folder / 'temporary'}",
        }
        arguments = ["--log-level", "DEBUG", "--pid-file", str(folder / "pid")]
        process = stack.enter_context(
            srm_driver(folder, clusters, flows, keys, arguments=arguments, environment=environment)
        )
        key_line = stores.client.key_pem.splitlines()[1]
        secrets = (USER_PASSWORD, WRONG_PASSWORD, PASSWORD, key_line)
        found = Running(process, folder, folder / "driver.properties", kafka, secrets, "secret-t", flow)
        await_until(lambda: f"{a}.secret-t" in kafka.topics(), START_SECONDS, lambda: found.log[-3000:])
        for alias in (a, pem):
            assert_copied(kafka, "secret-t", kafka, f"{alias}.secret-t", START_SECONDS)
        yield found


def _family(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    parent = psutil.Process(process.pid)
    return [parent, *parent.children(recursive=True)]


def _ui(process: subprocess.Popen[bytes]) -> str:
    """Where Spark's UI of a driver listens; empty while it does not answer."""
    for child in _family(process):
        connections: list[Any] = []
        with suppress(psutil.NoSuchProcess):  # some live for one question only
            connections = child.net_connections("tcp")
        for connection in connections:
            if connection.status == psutil.CONN_LISTEN:
                address = f"http://127.0.0.1:{connection.laddr.port}"
                with _answer(f"{address}/api/v1/applications") as text:
                    if text.startswith("["):
                        return address
    return ""


@contextmanager
def _answer(url: str) -> Iterator[str]:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            yield response.read().decode(errors="replace")
    except OSError:
        yield ""
    except Exception as error:  # what listens there need not speak HTTP
        yield f"{type(error).__name__}"


def test_logs_and_errors(running: Running) -> None:
    await_until(lambda: "state=retrying" in running.log, SOON, lambda: running.log[-3000:])
    reason = next(line for line in running.log.splitlines() if "state=retrying" in line)
    assert "wrong-hush" in reason
    await_until(lambda: " INFO AdminClientConfig: " in running.log, SOON, "Spark and its Kafka client log, too")
    assert re.search("(?i)authenticat", reason), reason
    assert running.found_in(running.log) == []


def test_process_arguments(running: Running) -> None:
    family = _family(running.process)
    assert any("java" in child.name() for child in family)
    for child in family:
        with suppress(psutil.NoSuchProcess):  # Spark's workers come and go
            assert running.found_in(" ".join(child.cmdline())) == [], child


def test_files_of_the_query_and_of_spark(running: Running) -> None:
    folder = running.folder / "temporary"
    await_until(lambda: list(folder.rglob("offsets/*")), SOON, "the query's checkpoint")
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        try:
            content = path.read_bytes().decode("latin-1")
        except FileNotFoundError:
            continue
        assert running.found_in(content) == [], path


def test_the_ui_of_spark(running: Running) -> None:
    address = await_until(lambda: _ui(running.process), SOON, "Spark's UI")
    with _answer(f"{address}/api/v1/applications") as text:
        (application,) = json.loads(text)
    api = f"{address}/api/v1/applications/{application['id']}"
    pages = [f"{api}/{name}" for name in ("environment", "jobs", "stages", "executors", "allexecutors")]
    pages.append(f"{api}/sql?details=true&planDescription=true&length=1000")
    pages += [f"{address}/{name}/" for name in ("environment", "SQL", "StreamingQuery", "jobs", "stages")]

    def looked() -> list[dict[str, Any]]:
        running.kafka.write(running.topic, numbered(1))  # those before may have been copied before Spark was there
        with _answer(pages[5]) as text:
            found: list[dict[str, Any]] = json.loads(text)
        return found

    plans = await_until(looked, SOON, "plans to look at")
    pages += [f"{address}/SQL/execution/?id={plan['id']}" for plan in plans[-3:]]
    for page in pages:
        with _answer(page) as text:
            assert len(text) > 2, page
            assert running.found_in(text) == [], page
    with _answer(pages[0]) as text:
        assert set(SPARK_SETTINGS) <= {key for key, _ in json.loads(text)["sparkProperties"]}


def test_what_shows_the_configuration(running: Running) -> None:
    settings = load_settings([running.config])
    assert running.found_in(repr(settings)) == []
    for arguments in (["show"], ["show", "--written"], ["show", "-o", "json"], ["validate"]):
        result = CliRunner().invoke(main, ["config", arguments[0], str(running.config), *arguments[1:]])
        assert result.exit_code == 0, result.output
        assert running.found_in(result.output) == []


def test_sighup_starts_only_what_changed_and_a_bad_file_changes_nothing(running: Running) -> None:
    good = running.config.read_text()
    apply = ["config", "apply", "--config", str(running.config), "--pid-file", str(running.folder / "pid")]
    running.kafka.create("late-t")
    running.kafka.write("late-t", numbered(20))
    try:
        running.config.write_text(good + "offset.lag.max = many\n")
        assert CliRunner().invoke(main, apply).exit_code == 1
        running.process.send_signal(1)
        await_until(lambda: "nothing was changed: 1 problem in" in running.log, SOON, "the refusal in the log")
        running.config.write_text(good + f"{running.flow}.topics = secret-.*, late-.*\n")
        result = CliRunner().invoke(main, apply)
        assert result.exit_code == 0, result.output
        again = f"flow={running.flow} starts again: changed topics.include"
        await_until(lambda: again in running.log, SOON, lambda: running.log[-2000:])
        assert "wrong-hush->b-hush starts again" not in running.log
        await_until(lambda: "a-hush.late-t" in running.kafka.topics(), SOON, lambda: running.log[-2000:])
        assert_copied(running.kafka, "late-t", running.kafka, "a-hush.late-t")
        assert running.process.poll() is None
    finally:
        running.config.write_text(good)
