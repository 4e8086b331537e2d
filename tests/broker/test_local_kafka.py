"""LocalKafka against itself: what every other broker test stands on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from srm_spark.errors import SetupError
from srm_spark.testing import KafkaCluster, LocalKafka, run_java
from srm_spark.testing.cluster import Capability, capabilities
from srm_spark.testing.ports import free_ports

TOPICS = "org.apache.kafka.tools.TopicCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"

StartKafka = Callable[..., LocalKafka]


def create_topic(broker: LocalKafka, topic: str, records: str = "") -> None:
    broker.tool(TOPICS, "--create", "--topic", topic)
    if records:
        broker.tool(PRODUCER, "--topic", topic, stdin=records)


def end_offset(broker: LocalKafka, topic: str) -> str:
    return broker.tool(OFFSETS, "--topic", topic).stdout.strip()


def test_tools_talk_to_a_started_cluster(primary: KafkaCluster, unique: str) -> None:
    server = ("--bootstrap-server", primary.bootstrap_servers)
    run_java(TOPICS, *server, "--create", "--topic", f"orders-{unique}", "--partitions", "2")
    assert f"orders-{unique}" in run_java(TOPICS, *server, "--list").stdout.splitlines()


def test_clusters_are_different_and_say_what_they_allow(primary: KafkaCluster, secondary: KafkaCluster) -> None:
    assert primary.bootstrap_servers != secondary.bootstrap_servers
    assert (Capability.CONTROL in capabilities(primary)) == isinstance(primary, LocalKafka)


@pytest.mark.slow
def test_data_and_port_survive_a_stop_and_a_kill(local_kafka: StartKafka) -> None:
    broker = local_kafka("restarted")
    address = broker.bootstrap_servers
    create_topic(broker, "orders", "a\nb\n")

    broker.stop()
    assert not broker.running
    broker.start()
    assert end_offset(broker, "orders") == "orders:0:2"
    broker.tool(PRODUCER, "--topic", "orders", stdin="c\n")

    broker.kill()
    assert not broker.running
    broker.start()
    assert end_offset(broker, "orders") == "orders:0:3"
    assert broker.bootstrap_servers == address


def test_what_a_killed_broker_has_unpacked_lies_in_its_folder(tmp_path: Path) -> None:
    """lz4's native library, when the first such batch comes; elsewhere nobody would ever remove it."""
    with LocalKafka("unpacking", tmp_path) as broker:
        create_topic(broker, "orders")
        broker.tool(PRODUCER, "--topic", "orders", "--compression-codec", "lz4", stdin="a\n")
        broker.kill()
    assert list(tmp_path.glob("liblz4*.so"))


def test_a_given_folder_is_kept_with_its_ports(tmp_path: Path) -> None:
    with LocalKafka("kept", tmp_path / "kept") as first:
        create_topic(first, "orders")
    with LocalKafka("kept", tmp_path / "kept") as second:
        assert second.port == first.port
        assert "orders" in second.tool(TOPICS, "--list").stdout.split()


def test_a_paused_broker_does_not_answer_until_it_goes_on(local_kafka: StartKafka) -> None:
    broker = local_kafka("paused")
    broker.pause()
    with pytest.raises(SetupError, match=f"{TOPICS} .*did not end within 3 s"):
        broker.tool(TOPICS, "--list", timeout=3)
    broker.resume()
    assert broker.tool(TOPICS, "--list").returncode == 0


def test_overrides_win_and_can_replace_the_listeners(local_kafka: StartKafka) -> None:
    listeners = "SASL_PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}"
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p" user_u="p";'
    broker = local_kafka(
        "sasl",
        overrides={
            "listeners": listeners,
            "inter.broker.listener.name": "SASL_PLAINTEXT",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": login,
        },
    )
    client = broker.directory / "client.properties"
    client.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n")
    assert broker.tool(TOPICS, "--list", "--command-config", str(client)).returncode == 0


def test_a_broker_that_cannot_start_shows_the_end_of_its_log() -> None:
    broker = LocalKafka("broken", overrides={"num.io.threads": "none"})
    try:
        with pytest.raises(SetupError, match=r"num\.io\.threads"):
            broker.start()
        assert not broker.running
    finally:
        broker.close()
    assert not broker.directory.exists()


def test_a_taken_port_is_named(tmp_path: Path, local_kafka: StartKafka) -> None:
    owner = local_kafka("owner")
    (tmp_path / "ports").write_text(f"{owner.port} {free_ports(1)[0]}")
    with pytest.raises(SetupError, match=f"(?s)broker 'late' at 127.0.0.1:{owner.port} did not start.*in use"):
        LocalKafka("late", tmp_path).start()


def test_a_failing_tool_says_what_it_printed(primary: KafkaCluster, unique: str) -> None:
    with pytest.raises(SetupError, match=r"(?s)--describe .*ended with 1.*does not exist"):
        run_java(TOPICS, "--bootstrap-server", primary.bootstrap_servers, "--describe", "--topic", f"none-{unique}")


def test_brokers_die_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from srm_spark.testing import LocalKafka\n"
        "broker = LocalKafka('orphan', Path(sys.argv[1]))\n"
        "broker.start()\n"
        "print(broker.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        broker_pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    deadline = time.monotonic() + 10
    while is_alive(broker_pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(broker_pid)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Without a parent that waits for it, a dead process may stay in the table.
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_java_source_is_compiled_and_run_with_the_kafka_jars(
    tmp_path: Path, java_judge: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    source = tmp_path / "Judge.java"
    source.write_text(
        "import org.apache.kafka.common.TopicPartition;\n"
        "public class Judge {\n"
        "  public static void main(String[] a) { System.out.println(new TopicPartition(a[0], 3)); }\n"
        "}\n"
    )
    assert java_judge(source, "orders").stdout == "orders-3\n"
