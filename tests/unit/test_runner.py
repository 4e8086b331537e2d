"""What a flow's status tells the log."""

from __future__ import annotations

import logging
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from srm_spark.config import load_settings
from srm_spark.flow.runner import FlowRunner
from srm_spark.flow.status import FlowState

CONFIG = "clusters = A, B\nA.bootstrap.servers = h:1\nB.bootstrap.servers = h:2\nA->B.enabled = true\n"


def test_what_stands_still_is_logged_once_with_its_reason(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "srm.properties"
    path.write_text(CONFIG)
    runner = FlowRunner(load_settings([path]).flows[0], MagicMock())
    with caplog.at_level(logging.WARNING):
        for reason in ("too large", "too large", "too old"):
            runner._show(FlowState.RUNNING, None, held={"orders-0": f"held at offset 5: {reason}"})
            runner._show(FlowState.RUNNING, None)  # nothing new about it
    assert caplog.messages == [
        "flow=A->B orders-0 held at offset 5: too large",
        "flow=A->B orders-0 held at offset 5: too old",
    ]
