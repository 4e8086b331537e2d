"""Where the compiled loop is used, and where it must not be."""

from __future__ import annotations

import pytest

from srm_spark.doctor import machine
from srm_spark.kafka import compiled


def test_the_library_that_is_installed_is_known() -> None:
    assert compiled.why_not() is None


def test_an_unknown_library_means_the_slower_way_and_doctor_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "libversion", lambda: ("2.99.0", 0))
    compiled.why_not.cache_clear()
    try:
        reason = compiled.why_not()
        assert reason == "librdkafka is 2.99.0, and the loop was tried with 2.16.0 only"
        assert f"records one by one: {reason}" in machine.check_client().found
    finally:
        compiled.why_not.cache_clear()
