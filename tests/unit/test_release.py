"""What differs between releases of Kafka for a broker of the tests."""

from __future__ import annotations

import pytest

from srm_spark.errors import SetupError
from srm_spark.jars import JAR_SETS, OTHER_KAFKAS
from srm_spark.testing.release import release


def test_what_has_a_zookeeper_has_no_roles() -> None:
    """Kafka 2.8 would start its preview of KRaft."""
    found = [release(jar_set.name.removeprefix("kafka-")) for jar_set in OTHER_KAFKAS]
    assert [one.has_zookeeper for one in found] == [True, False, False]
    for one in (*found, release()):
        assert one.has_zookeeper == ("zookeeper.connect" in one.settings) != ("process.roles" in one.settings)
        assert one.jar_set in JAR_SETS


def test_setup_leaves_other_releases_out() -> None:
    assert [name for name, jar_set in JAR_SETS.items() if jar_set.at_setup] == ["kafka"]


def test_a_release_without_jars_names_those_that_there_are() -> None:
    with pytest.raises(SetupError, match=r"no brokers of Kafka '1\.0\.0'.*kafka-2\.8\.2"):
        release("1.0.0")
