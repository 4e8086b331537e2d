"""A record of every change that was asked for: who, from where, what, of which flow, and what came of it.

One line of JSON each, in a file of its own or in the log. It holds no password, no token and no content of a record.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from enum import Enum

from srm_spark.api.roles import Caller
from srm_spark.config.keys_process import SERVICE_AUDIT_KEY
from srm_spark.errors import ConfigError, Problem

_log = logging.getLogger("srm_spark.audit")
_LONGEST = 1000
"""Characters of one text: names of whoever tries to log in may be longer."""
_ROOM_BYTES = 1_000_000
"""Left on the disk: for what is asked for at the same time, and what comes of it."""
AuditValue = str | int | bool | None | list[str]


class Result(Enum):
    """What came of it."""

    DONE = "done"
    BEGUN = "begun"
    DECLINED = "declined"
    """Allowed, and there was nothing to do, or it may not be done now."""
    REFUSED = "refused"
    """Not allowed."""
    FAILED = "failed"


class Audit:
    """Safe to use from several threads."""

    def __init__(self, path: str | None = None, clock: Callable[[], float] = time.time) -> None:
        """`path` None: the log. Raises ConfigError for a file that cannot be written."""
        self._path, self._clock, self._lock = path, clock, threading.Lock()
        _log.setLevel(logging.INFO)  # whatever else is not to be told
        if (why := self.why_not()) is not None:
            hint = "name a file in a directory that this user may write"
            raise ConfigError([Problem(str(path), SERVICE_AUDIT_KEY, f"cannot be written: {why}", hint)])

    def why_not(self) -> str | None:
        """Why nothing can be recorded now; None where it can. What cannot be recorded is not to be done."""
        if self._path is None:
            return None
        try:
            self._append(b"")
            disk = os.statvfs(self._path)
        except OSError as error:
            return error.strerror or str(error)
        # To write nothing succeeds on a full disk, too.
        return os.strerror(errno.ENOSPC) if disk.f_bavail * disk.f_frsize < _ROOM_BYTES else None

    def record(
        self,
        caller: Caller,
        does: str,
        flow: str | None,
        result: Result,
        *,
        why: str = "",
        about: Mapping[str, AuditValue] = {},
    ) -> None:
        """Record one. A file that cannot be written any more is told in the log, together with the record."""
        document = {
            "kind": "audit",
            "at": int(self._clock() * 1000),
            "who": _short(caller.name),
            "from": caller.address,
            "does": does,
            "flow": flow,
            "result": result.value,
            "why": _short(why),
            **{name: _short(value) for name, value in about.items()},
        }
        line = json.dumps(document)
        if self._path is None:
            _log.info("%s", line)
            return
        try:
            self._append(line.encode() + b"\n")
        except OSError as error:
            _log.error("%s: cannot be written: %s; %s", self._path, error, line)

    def _append(self, line: bytes) -> None:
        """Opened each time, so that it can be moved away; one write, so that lines of several processes stay whole."""
        assert self._path is not None
        with self._lock:
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if os.write(file, line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
            finally:
                os.close(file)


def _short(value: AuditValue) -> AuditValue:
    return value[:_LONGEST] + "…" if isinstance(value, str) and len(value) > _LONGEST else value
