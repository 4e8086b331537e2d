"""Moments as people write them."""

from __future__ import annotations

import time

import pytest

from srm_spark.core.moments import moment_of, now, stamp_of


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T01:00:01+01:00", 1000),
        (" 1970-01-02T00:00:00.250+00:00", 86_400_250),
    ],
)
def test_a_moment_is_written_so(text: str, moment: int) -> None:
    assert moment_of(text) == moment


@pytest.mark.parametrize(
    ("text", "said"),
    [("noon", "a time as 2026-01-31T12:00:00Z"), ("2026-01-31T12:00", "a time with its zone: 2026-01-31T12:00Z, or ")],
)
def test_what_is_no_moment_is_told(text: str, said: str) -> None:
    with pytest.raises(ValueError, match="a time") as caught:
        moment_of(text)
    assert str(caught.value).startswith(said)


def test_this_moment_is_written_in_utc_and_read_again() -> None:
    before = int(time.time()) * 1000
    written = now()
    assert written == stamp_of(moment_of(written))
    assert written.endswith("Z")
    assert before <= moment_of(written) <= time.time() * 1000
