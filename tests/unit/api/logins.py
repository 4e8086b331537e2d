"""Users of tests, and the headers that they send."""

from __future__ import annotations

import base64

from argon2 import PasswordHasher

from srm_spark.api.roles import roles_of
from srm_spark.api.users import Users, UserTable

QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
JSON = {"x-requested-with": "tests"}
"""What every changing request to /v3 has."""


def login(text: str) -> dict[str, str]:
    """The header of `name:password`."""
    return {"authorization": f"Basic {base64.b64encode(text.encode()).decode()}"}


def users_of(**roles: str) -> Users:
    """Users whose passwords are their names."""
    hashes = {name: QUICK.hash(name) for name in roles}
    return Users(UserTable(hashes, {name: roles_of(text) for name, text in roles.items()}))
