"""What a file says of alerts."""

from __future__ import annotations

import pytest

from srm_spark.core.alerting import AlertKind, AlertSettings
from tests.unit.config.conftest import Loader, problems

URL = "https://hooks.example/T0/verysecret"


def test_nobody_is_told_without_a_webhook(loaded: Loader) -> None:
    assert loaded("").settings.service.alerts is None
    found = loaded("service.alerts.rpo.seconds = 60")
    assert found.settings.service.alerts is None
    assert any("service.alerts.webhook is not set" in warning for warning in found.settings.warnings)


def test_a_webhook_is_enough_and_is_shown_nowhere(loaded: Loader) -> None:
    found = loaded(f"service.alerts.webhook = {URL}").settings.service
    assert found.alerts == AlertSettings(URL)
    assert "verysecret" not in repr(found)


def test_what_and_when(loaded: Loader) -> None:
    text = f"service.alerts.webhook = {URL}\nservice.alerts = rpo, records-lost\nservice.alerts.rpo.seconds = 10\n"
    text += "service.alerts.after.seconds = 0\nservice.alerts.repeat.seconds = 60"
    kinds = frozenset({AlertKind.RPO, AlertKind.RECORDS_LOST})
    assert loaded(text).settings.service.alerts == AlertSettings(URL, kinds, 10, 0, 60)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("", "rpo, lost", "unknown alert lost"),
        ("", ",", "names no alert"),
        (".webhook", "ftp://x", "no URL"),
        (".webhook", "", "no URL"),
        (".webhook", "https://[", "no URL"),
        (".rpo.seconds", "-1", "from 0 to"),
        (".after.seconds", "soon", "from 0 to"),
        (".repeat.seconds", "1", "from 60 to"),
    ],
)
def test_what_is_wrong_is_told(loaded: Loader, key: str, value: str, said: str) -> None:
    lines = [f"service.alerts{key} = {value}"]
    lines += [] if key == ".webhook" else [f"service.alerts.webhook = {URL}"]
    (problem,) = problems(loaded("\n".join(lines)))
    assert f"service.alerts{key}" in problem
    assert said in problem
    assert "verysecret" not in problem
