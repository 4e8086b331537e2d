"""From what a provider says of somebody to what he may do here: a file of groups and their roles."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from srm_spark.api.roles import Roles, combined, roles_of
from srm_spark.config.keys_oidc import ROLES_FILE_KEY
from srm_spark.errors import ConfigError, Problem

EVERYBODY = "*"
"""The group of whoever the provider knows."""
_HINT = "write lines as: my-group:viewer A->B=operator"
_LONGEST_NAME = 200


class GroupRoles:
    """Roles of groups as a file has them, until there is another one."""

    def __init__(self, table: Mapping[str, Roles]) -> None:
        """By name of the group."""
        self._table = table
        self.is_current = True
        """False while the file cannot be used, and what it said before goes on to count."""

    def replace(self, table: Mapping[str, Roles]) -> None:
        """From now on, these."""
        self._table, self.is_current = table, True

    def of(self, groups: Collection[str]) -> Roles:
        """What somebody may do who is in these: for each flow the most of them."""
        table = self._table
        return combined(table[one] for one in {EVERYBODY, *groups} if one in table)

    @property
    def flows(self) -> set[str]:
        """Those that roles are of."""
        return {flow for roles in self._table.values() for flow in roles.flows}


def read_groups(path: str) -> Mapping[str, Roles]:
    """The roles of a file. Raises ConfigError with everything that is wrong with it."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise ConfigError([Problem(path, ROLES_FILE_KEY, f"cannot be read: {reason}", _HINT)]) from error
    found: dict[str, Roles] = {}
    problems = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        group, colon, said = line.strip().rpartition(":")  # names of groups may be URNs
        place = f"{path}:{number}"
        if not group or not colon or not said.strip():
            problems.append(Problem(place, ROLES_FILE_KEY, "is no line group:roles", _HINT))
        elif group in found:
            problems.append(Problem(place, ROLES_FILE_KEY, f"{group} is there twice", "remove one"))
        else:
            try:
                found[group] = roles_of(said)
            except ValueError as error:
                problems.append(Problem(place, ROLES_FILE_KEY, f"roles of {group}: {error}", _HINT))
    if not found and not problems:
        problems.append(Problem(path, ROLES_FILE_KEY, "names no group", _HINT))
    if problems:
        raise ConfigError(problems)
    return found


def groups_of(claims: Mapping[str, Any], claim: str) -> frozenset[str]:
    """The groups that a token lists; none where the claim is anything but a list of names.

    A text is no list: whether its letters, its words or the whole were meant, nobody knows.
    """
    value: object = claims.get(claim)
    if value is None:
        value = claims
        for part in claim.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        return frozenset()
    return frozenset(value)


def name_of(claims: Mapping[str, Any], claim: str) -> str:
    """How somebody is called here: never as a user of the file is, whose names have no colon."""
    found = claims.get(claim)
    if not isinstance(found, str) or not found.strip() or not found.isprintable() or len(found) > _LONGEST_NAME:
        found = claims["sub"]
    return f"oidc:{found}"
