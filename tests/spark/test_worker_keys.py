"""Connect's own list of worker properties: each one is in the key table, so none is called unknown."""

from __future__ import annotations

import re

from srm_spark.config import keys
from srm_spark.config.keys_client import CLIENT_KEYS
from srm_spark.config.schema import KeyEffect
from srm_spark.testing import run_java

WORKER = "org.apache.kafka.connect.runtime.distributed.DistributedConfig"


def test_the_key_table_has_every_property_of_a_connect_worker() -> None:
    page = run_java(WORKER).stdout  # it prints its documentation
    names = set(re.findall(r'<a id="([^"]+)"></a>', page))
    assert {"offset.storage.topic", "plugin.path", "sasl.jaas.config", "listeners"} <= names
    assert sorted(name for name in names if name not in keys.BY_NAME and name not in CLIENT_KEYS) == []
    for name in sorted(names & keys.BY_NAME.keys()):
        row = keys.BY_NAME[name]
        assert row.effect is not KeyEffect.IGNORED or len(row.does) > 10, f"{name} is ignored without a reason"
