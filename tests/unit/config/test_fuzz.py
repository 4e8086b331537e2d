"""Whatever a file holds: settings or ConfigError, nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from srm_spark.config import librdkafka, load_settings, spark_kafka_options
from srm_spark.config.keys import BY_NAME
from srm_spark.config.keys_client import CLIENT_KEYS
from srm_spark.config.load import load
from srm_spark.errors import ConfigError
from tests.unit.config.conftest import BASE

PREFIXES = [
    "",
    "A.",
    "B.",
    "A->B.",
    "B->A.",
    "A->C.",
    "workers.",
    "connectors.",
    "A.consumer.",
    "B.producer.",
    "A->B.producer.override.",
    "A->B.source.cluster.",
    "A->B.worker.",
    "config.providers.x.",
]
WORDS = (
    "true",
    "false",
    "",
    "1",
    "-1",
    "0",
    "9" * 30,
    "x",
    ".*",
    "a(",
    "${env:HOME}",
    "${file:x:y}",
    "SSL",
    "SASL_SSL",
    "PLAIN",
)
VALUES = st.one_of(st.sampled_from(WORDS), st.text(max_size=20), st.integers().map(str))
KEYS = st.builds(
    str.__add__,
    st.sampled_from(PREFIXES),
    st.one_of(st.sampled_from(sorted(BY_NAME)), st.sampled_from(sorted(CLIENT_KEYS)), st.text(max_size=12)),
)
quick = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "f"


@quick
@given(overrides=st.dictionaries(KEYS, VALUES, max_size=8))
def test_any_keys_and_values(file: Path, overrides: dict[str, str]) -> None:
    path = file.with_suffix(".properties")
    path.write_text(BASE)
    found = load([path], overrides)
    if found.report.problems:
        assert all(problem.location and problem.key for problem in found.report.problems)
        with pytest.raises(ConfigError):
            load_settings([path], overrides)
        return
    for flow in found.settings.flows:
        librdkafka(flow.source, flow.consumer)
        librdkafka(flow.target, flow.producer)
        spark_kafka_options(flow.source, flow.consumer, flow.admin_timeout_seconds)


@quick
@given(content=st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace")))
@pytest.mark.parametrize("suffix", [".properties", ".yaml"])
def test_any_bytes(file: Path, suffix: str, content: bytes) -> None:
    path = file.with_suffix(suffix)
    path.write_bytes(content)
    found = load([path])
    assert found.report.problems


_NAMES = st.sampled_from([*PREFIXES, "topics", "A", "A->B"])
_TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner),
    max_leaves=12,
)


@quick
@given(tree=_TREES)
def test_any_yaml_tree(file: Path, tree: object) -> None:
    path = file.with_suffix(".yaml")
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    load([path], {"clusters": "A, B"})
