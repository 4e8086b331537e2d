"""The service beside the demo: a process of its own, as it runs beside a driver, that never outlives us."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TextIO

from srm_spark.errors import SetupError
from srm_spark.testing.ports import free_ports
from srm_spark.testing.process import watchdog

PORT = 6670
_START_SECONDS = 60.0
_LOOK_SECONDS = 0.2


@contextmanager
def served(config: Path, defines: Mapping[str, str], log: TextIO) -> Iterator[str]:
    """The address of a service over the flows of a file, which answers. Raises SetupError where it does not start."""
    (port,) = free_ports(1, range(PORT, PORT + 1)) or free_ports(1)
    address = f"http://127.0.0.1:{port}"
    command = [str(Path(sys.executable).parent / "srm-service"), "--config", str(config)]
    own = {"service.listen": f"127.0.0.1:{port}", "service.anonymous.role": "admin"}
    own["service.moves.path"] = tempfile.gettempdir()
    for key, value in {**own, **defines}.items():
        command += ["-D", f"{key}={value}"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    watching = watchdog(process.pid)
    try:
        _await_answer(process, port)
        yield address
    finally:
        process.terminate()
        process.wait()
        watching.communicate(b"\n")


def _await_answer(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError, HTTPException), closing(HTTPConnection("127.0.0.1", port, timeout=5)) as asked:
            asked.request("GET", "/healthz")
            if asked.getresponse().status == HTTPStatus.OK:
                return
        time.sleep(_LOOK_SECONDS)
    raise SetupError(f"srm-service does not answer at 127.0.0.1:{port}", "its reason is in the log")
