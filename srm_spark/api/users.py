"""Who may ask, and do what: a file of names, argon2 hashes and roles, and the header of HTTP Basic."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from srm_spark.api.attempts import Attempts
from srm_spark.api.roles import NOWHERE, Roles, roles_of
from srm_spark.config.keys_process import SERVICE_USERS_KEY
from srm_spark.errors import ConfigError, Problem

_REMEMBERED = 256
"""Logins that were right: a hash takes a tenth of a second and 64 MB, which not every request is to cost."""
_LONGEST = 1024
"""Characters of a header: whatever is longer is no login."""
_HINT = "make lines with: srm-service user NAME"


@dataclass(frozen=True)
class UserTable:
    """What a file says: hashes of names, and roles of those who have other ones than a viewer of all flows."""

    hashes: Mapping[str, str] = field(repr=False)
    roles: Mapping[str, Roles] = field(default_factory=dict)


class Users:
    """Safe to use from several threads; one hash at a time, so that guesses take no more than one core."""

    def __init__(self, table: UserTable, attempts: Attempts | None = None) -> None:
        """Those of a table, until there is another one."""
        self._table, self._attempts = table, attempts or Attempts()
        self.is_current = True
        """False while the file cannot be used, and its last users that could be read go on to count."""
        self._hasher = PasswordHasher()
        self._nobody = self._hasher.hash(os.urandom(16))
        """What a name that does not exist is compared with: it takes as long as one that does."""
        self._salt = os.urandom(32)
        self._right: OrderedDict[bytes, tuple[str, str]] = OrderedDict()
        """Name, and the hash that the password was right for."""
        self._lock = threading.Lock()
        self._memory = threading.Lock()

    @property
    def flows(self) -> set[str]:
        """Those that roles are of."""
        return {flow for roles in self._table.roles.values() for flow in roles.flows}

    def roles(self, name: str) -> Roles:
        """What a user may do; nothing where there is none of that name any more."""
        table = self._table
        return table.roles.get(name, Roles()) if name in table.hashes else NOWHERE

    def replace(self, table: UserTable) -> None:
        """From now on, these. A login that was remembered counts as long as its hash is the same."""
        self._table, self.is_current = table, True

    def name_of(self, header: str, address: str = "") -> str | None:
        """Whose header `Authorization` this is; None where it is nobody's. May take a tenth of a second.

        Raises TooManyWrong, whatever the header is, where there were too many wrong ones from that address.
        """
        login = login_of(header)
        if login is None:
            return None
        digest = hashlib.sha256(self._salt + header.encode()).digest()
        with self._memory:
            self._attempts.check(address, login[0])
            name, hashed = self._right.get(digest, ("", ""))
            if hashed and self._table.hashes.get(name) == hashed:
                self._right.move_to_end(digest)
                return name
        with self._lock:
            with self._memory:  # those in front of us may have been wrong
                self._attempts.check(address, login[0])
            hashed = self._table.hashes.get(login[0], self._nobody)
            is_right = self.is_right(hashed, login[1])
            with self._memory:
                if not is_right:
                    self._attempts.wrong(address, login[0])
                    return None
                self._attempts.right(address, login[0])
                self._right[digest] = login[0], hashed
                while len(self._right) > _REMEMBERED:
                    self._right.popitem(last=False)
        return login[0]

    def is_right(self, hashed: str, password: str) -> bool:
        """Whether a hash is of this password; takes a tenth of a second, as it should."""
        try:
            self._hasher.verify(hashed, password)
        except (VerificationError, InvalidHashError):
            return False
        return True


def login_of(header: str) -> tuple[str, str] | None:
    """Name and password of a header; None where it is no login."""
    kind, _, rest = header.partition(" ")
    if kind.lower() != "basic" or len(header) > _LONGEST:
        return None
    try:
        name, colon, password = base64.b64decode(rest.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    return (name, password) if colon else None


def line_of(name: str, password: str, roles: str = "") -> str:
    """A line of the file; `roles` as `roles_of` reads them."""
    line = f"{name}:{PasswordHasher().hash(password)}"
    return f"{line}:{roles}" if roles else line


def read_users(path: str) -> UserTable:
    """The users of a file. Raises ConfigError with everything that is wrong with it; no hash is shown."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise ConfigError([Problem(path, SERVICE_USERS_KEY, f"cannot be read: {reason}", _HINT)]) from error
    hashes: dict[str, str] = {}
    roles: dict[str, Roles] = {}
    problems = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        place = f"{path}:{number}"
        name, _, written = line.strip().partition(":")
        hashed, _, said = written.partition(":")
        if not name or not hashed.startswith("$argon2"):
            problems.append(Problem(place, SERVICE_USERS_KEY, "is no line name:argon2-hash:roles", _HINT))
        elif name in hashes:
            problems.append(Problem(place, SERVICE_USERS_KEY, f"{name} is there twice", "remove one"))
        else:
            hashes[name] = hashed
            try:
                roles[name] = roles_of(said)
            except ValueError as error:
                hint = "write roles as: viewer A->B=operator"
                problems.append(Problem(place, SERVICE_USERS_KEY, f"roles of {name}: {error}", hint))
    if not hashes and not problems:
        problems.append(Problem(path, SERVICE_USERS_KEY, "names nobody", _HINT))
    if problems:
        raise ConfigError(problems)
    return UserTable(hashes, roles)
