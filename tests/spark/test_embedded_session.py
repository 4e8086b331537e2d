"""The session that a driver makes for itself: what it listens on."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress

UI_PORTS = range(4040, 4057)
"""Where Spark looks for a free port for its UI, before it gives up and does not start."""
SCRIPT = r"""
import glob, json, os, re
from pathlib import Path
from srm_spark.spark.session import open_session

LISTEN = "0A"

def family(pid):
    yield pid
    for children in glob.glob(f"/proc/{pid}/task/*/children"):
        for child in Path(children).read_text().split():
            yield from family(child)

def sockets(pid):
    for entry in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            yield from re.findall(r"socket:\[(\d+)\]", os.readlink(entry))
        except OSError:
            pass

session, _ = open_session(settings={"spark.driver.memory": "512m"})
assert session.sparkContext.parallelize([1]).map(lambda x: x + 1).collect() == [2]
ours = {inode for pid in family(str(os.getpid())) for inode in sockets(pid)}
lines = [line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
print(json.dumps([line[1] for line in lines if line[3] == LISTEN and line[9] in ours]))
session.stop()
"""
_LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
"""127.0.0.1, the same as IPv6 says it, and ::1, as Linux writes them."""


def test_it_listens_on_loopback_only_and_starts_where_the_ports_of_the_ui_are_taken() -> None:
    with ExitStack() as taken:
        for port in UI_PORTS:
            with suppress(OSError):  # somebody else has it
                taken.enter_context(socket.create_server(("", port)))
        done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    addresses = [where.partition(":")[0] for where in json.loads(done.stdout)]
    assert addresses  # the script can see sockets at all
    assert set(addresses) <= _LOOPBACK, done.stdout
