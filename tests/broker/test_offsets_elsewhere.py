"""Offsets that are kept outside of Kafka: a Spark query, a sink and a Flink job go on on the other side, and back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import DataFrame, SparkSession

from srm_spark.cli.control import main
from srm_spark.testing import KafkaCluster, LocalKafka
from tests.broker.conftest import Pair, Start
from tests.broker.mirror import await_count, await_lag_zero, write_config
from tests.kafka_io import Kafka, numbered, produce

pytestmark = pytest.mark.slow

_VERSION = "spark.sql.streaming.offsetLog.formatVersion"


@pytest.fixture
def short_lived(secondary: KafkaCluster, unique: str, start: Start) -> Iterator[tuple[Pair, LocalKafka]]:
    """A pair whose source can be stopped."""
    with LocalKafka(f"short-{unique}") as source:
        clusters: dict[str, KafkaCluster] = {f"a{unique}": source, f"b{unique}": secondary}
        yield Pair(Kafka(source), Kafka(secondary), clusters, unique, start), source


def translate(path: Path, source: str, target: str, file: Path, *arguments: str) -> Result:
    flow = ("--source", source, "--target", target, "--file", str(file))
    return CliRunner().invoke(main, ["offsets", "translate", "--config", str(path), *flow, *arguments])


def gapped(pair: Pair, count: int) -> list[str]:
    """Transactions, every third one aborted, so that both sides count differently; the values that are committed."""
    written = []
    producer = pair.source.producer(transactional_id=f"tx-{pair.unique}")
    producer.init_transactions(30)
    for number in range(count):
        records = numbered(6, 2, f"{number}-")
        producer.begin_transaction()
        produce(producer, pair.topic(), records)
        assert producer.flush(30) == 0
        if number % 3 == 1:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
            written += [(record.value or b"").decode() for record in records]
    return written


class Query:
    """A streaming query of a user's, run until it has read all there is; `values` is what it read."""

    def __init__(self, spark: SparkSession, checkpoint: Path, version: str = "1") -> None:
        self.values: list[str] = []
        self.checkpoint = checkpoint
        self._spark = spark
        self._version = version

    def run(self, servers: str, topic: str, **options: str) -> None:
        reader = self._spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
        reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
        reader = reader.option("kafka.isolation.level", "read_committed").options(**options)
        frame = reader.load().selectExpr("CAST(value AS STRING) AS value")
        writer = frame.writeStream.foreachBatch(self._take).option("checkpointLocation", str(self.checkpoint))
        self._spark.conf.set(_VERSION, self._version)
        try:
            query = writer.trigger(availableNow=True).start()
        finally:
            self._spark.conf.unset(_VERSION)
        assert query.awaitTermination(120)

    def _take(self, frame: DataFrame, _: int) -> None:
        self.values += [row.value for row in frame.collect()]

    @property
    def newest(self) -> Path:
        """The file with its newest offsets."""
        return max((self.checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))


@pytest.mark.parametrize(("keeps_checkpoint", "version"), [(False, "1"), (True, "1"), (True, "2")])
def test_a_spark_query_goes_on_on_the_target(
    short_lived: tuple[Pair, LocalKafka],
    spark: SparkSession,
    tmp_path: Path,
    keeps_checkpoint: bool,
    version: str,
) -> None:
    """With `startingOffsets` in a new checkpoint, or in a copy of the old one, which keeps the state of the query."""
    pair, source = short_lived
    pair.source.create(pair.topic(), 2)
    written = gapped(pair, 4)
    keys = {**pair.keys, f"{pair.alias}.consumer.isolation.level": "read_committed", "admin.timeout.ms": "5000"}
    query = Query(spark, tmp_path / "checkpoint", version)
    query.run(pair.source.bootstrap_servers, pair.topic())
    assert sorted(query.values) == sorted(written)
    assert query.newest.read_text().startswith(f"v{version}\n")
    written += gapped(pair, 3)
    driver = pair.replicate(keys)
    await_count(pair.target, pair.remote(), len(written))
    await_lag_zero(driver)
    driver.stop()
    source.stop()

    path = write_config(tmp_path / "srm.properties", pair.clusters, [pair.flow], keys)
    there = Query(spark, tmp_path / "there")
    if keeps_checkpoint:
        shutil.copytree(query.checkpoint, there.checkpoint)
        for checksum in there.checkpoint.glob("offsets/.*.crc"):
            checksum.unlink()
        answer = translate(path, pair.alias, pair.target_alias, query.newest, "--to", str(there.newest))
        options = {}
    else:
        answer = translate(path, pair.alias, pair.target_alias, query.newest)
        options = {"startingOffsets": answer.stdout.splitlines()[-1]}
    assert answer.exit_code == 0, answer.output
    there.run(pair.target.bootstrap_servers, pair.remote(), **options)
    assert sorted(query.values + there.values) == sorted(written)


def test_what_cannot_be_translated_is_told_at_once_and_nothing_is_written(pair: Pair, tmp_path: Path) -> None:
    for name in ("t", "other"):
        pair.source.create(pair.topic(name), 1)
        pair.source.write(pair.topic(name), numbered(5))
    keys = {"topics": pair.topic(), f"{pair.alias}.consumer.auto.offset.reset": "earliest"}
    driver = pair.replicate(keys)
    await_count(pair.target, pair.remote(), 5)
    await_lag_zero(driver)
    path = write_config(tmp_path / "srm.properties", pair.clusters, [pair.flow], keys)
    file, to = tmp_path / "offsets.json", tmp_path / "there.json"
    wanted = {pair.topic(): {"0": 3, "1": 0, "2": -7}, pair.topic("other"): {"0": 2}, "nowhere": {"0": -1}}
    file.write_text(json.dumps(wanted))
    answer = translate(path, pair.alias, pair.target_alias, file, "--to", str(to))
    assert (answer.exit_code, answer.stdout, to.exists()) == (3, "", False), answer.output
    for told in (
        f"{pair.topic()}-2: -7 is no offset",
        f"{pair.topic()}-1 at 0 cannot be translated: the partition is not replicated yet",
        f"{pair.topic('other')}-0 at 2 cannot be translated: it does not flow {pair.flow}: {pair.topic('other')} "
        "matches no pattern of the topic filter",
        "nowhere-0 at -1 cannot be translated: it does not flow",
    ):
        assert told in answer.stderr
    answer = translate(path, pair.alias, pair.target_alias, file, "--to", str(to), "--partial")
    assert (answer.exit_code, json.loads(to.read_text())) == (3, {pair.remote(): {"0": 3}}), answer.output
    answer = translate(path, pair.target_alias, pair.alias, file)
    assert answer.exit_code == 2
    file.write_text("orders")
    answer = translate(path, pair.alias, pair.target_alias, file)
    assert (answer.exit_code, "expected a file from offsets/" in answer.output) == (1, True)


CASES: dict[str, Callable[[str, int], str]] = {
    "yaml": lambda topic, offset: f"{topic}:\n  0: {offset}\n",
    "json": lambda topic, offset: f'{{"{topic}":{{"0":{offset}}}}}\n',
    "connect": lambda topic, offset: (
        f'{{"offsets":[{{"partition":{{"kafka_topic":"{topic}","kafka_partition":0}},'
        f'"offset":{{"kafka_offset":{offset}}}}}]}}\n'
    ),
}


def test_there_and_back(pair: Pair, tmp_path: Path) -> None:
    """Every position, in every layout; -1 and -2 stay, and a position ahead of replication is told."""
    pair.source.create(pair.topic(), 1)
    pair.source.write(pair.topic(), numbered(7))
    pair.source.delete_records(pair.topic(), 0, 3)  # the copies of 3 to 6 lie at 0 to 3
    driver = pair.replicate()
    await_count(pair.target, pair.remote(), 4)
    await_lag_zero(driver)
    back = f"{pair.target_alias}->{pair.alias}"
    path = write_config(tmp_path / "srm.properties", pair.clusters, [pair.flow, back], pair.keys)
    file = tmp_path / "offsets"
    for render in CASES.values():
        for here, there in ((3, 0), (5, 2), (7, 4)):
            file.write_text(render(pair.topic(), here))
            answer = translate(path, pair.alias, pair.target_alias, file)
            assert (answer.exit_code, answer.stdout) == (0, render(pair.remote(), there)), answer.output
            file.write_text(render(pair.remote(), there))
            answer = translate(path, pair.target_alias, pair.alias, file)
            assert (answer.exit_code, answer.stdout) == (0, render(pair.topic(), here)), answer.output
    for symbol in (-1, -2):
        file.write_text(CASES["json"](pair.topic(), symbol))
        answer = translate(path, pair.alias, pair.target_alias, file)
        assert (answer.exit_code, answer.stdout) == (0, CASES["json"](pair.remote(), symbol))
    file.write_text(CASES["json"](pair.topic(), 50))
    answer = translate(path, pair.alias, pair.target_alias, file)
    assert (answer.exit_code, answer.stdout) == (0, CASES["json"](pair.remote(), 4))
    assert "ahead of replication" in answer.stderr
