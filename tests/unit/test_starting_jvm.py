"""What a JVM that starts says is passed on, but for one line that says nothing. A shell stands for it."""

from __future__ import annotations

import signal
import subprocess
import threading

import pytest

from srm_spark.spark.starting import THREAD, sparing_the_jvm

SAYS = (
    "echo said >&2; echo WARNING: Using incubator modules: jdk.incubator.vector >&2; printf 'last words' >&2; kill $$"
)


def test_what_it_says_is_there_before_the_failure_to_start_and_sigterm_does_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def start() -> None:
        with sparing_the_jvm():
            jvm = subprocess.Popen(["/bin/sh", "-c", SAYS], preexec_fn=lambda: None)  # noqa: PLW1509 - as pyspark does
            assert jvm.wait(30) == 0
            raise RuntimeError

    with pytest.raises(RuntimeError):
        start()
    assert capfd.readouterr().err == "said\nlast words"
    assert subprocess.run(["/bin/sh", "-c", "kill $$"], check=False).returncode == -signal.SIGTERM


def test_after_ctrl_c_nobody_hears_that_it_cannot_start(capfd: pytest.CaptureFixture[str]) -> None:
    def start() -> None:
        with sparing_the_jvm():
            command = ["/bin/sh", "-c", "read _; echo said >&2"]
            jvms.append(subprocess.Popen(command, stdin=subprocess.PIPE, preexec_fn=lambda: None))  # noqa: PLW1509
            raise KeyboardInterrupt

    jvms: list[subprocess.Popen[bytes]] = []
    with pytest.raises(KeyboardInterrupt):
        start()
    jvms[0].communicate(b"\n", timeout=30)
    for thread in [thread for thread in threading.enumerate() if thread.name == THREAD]:
        thread.join(30)
    assert capfd.readouterr().err == ""
