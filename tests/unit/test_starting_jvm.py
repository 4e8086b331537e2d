"""What a JVM that starts says is passed on, but for one line that says nothing. A shell stands for it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from srm_spark.demo.run import output_to
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


def test_where_it_speaks_to_was_decided_when_it_started(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log:
        with output_to(log), sparing_the_jvm():
            command = ["/bin/sh", "-c", "read _; echo said >&2"]
            jvm = subprocess.Popen(command, stdin=subprocess.PIPE, preexec_fn=lambda: None)  # noqa: PLW1509
        jvm.communicate(b"\n", timeout=30)
        for thread in [thread for thread in threading.enumerate() if thread.name == THREAD]:
            thread.join(30)
    assert capfd.readouterr().err == ""
    assert (tmp_path / "log").read_text() == "said\n"


WITHOUT_STDERR = """
import os, subprocess, threading
from srm_spark.spark.starting import THREAD, sparing_the_jvm
kept = os.dup(2)
os.close(2)
with sparing_the_jvm():
    command = ["/bin/sh", "-c", "read _; echo said >&2"]
    jvm = subprocess.Popen(command, stdin=subprocess.PIPE, preexec_fn=lambda: None)
    try:
        os.fstat(2)
    except OSError:
        print("none")
os.dup2(kept, 2)
jvm.communicate(b"\\n", timeout=30)
for thread in [thread for thread in threading.enumerate() if thread.name == THREAD]:
    thread.join(30)
print(jvm.returncode)
"""
"""In a process of its own: a thread of another test could open something meanwhile, which would get the number 2."""


def test_a_process_without_stderr_starts_one_all_the_same_and_may_get_one_meanwhile() -> None:
    command = [sys.executable, "-c", WITHOUT_STDERR]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("none\n0\n", "")
