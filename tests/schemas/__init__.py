"""Schemas that platforms publish, cut down to what `srm-control deploy` writes; `README.md` has their origin."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

_FOLDER = Path(__file__).parent


@cache
def schemas(name: str) -> dict[str, Any]:
    """Kind of a document, or operation of an interface → its schema."""
    found: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text())["schemas"]
    return found


def complaints(name: str, kind: str, document: object) -> list[str]:
    """What the schema of `kind` says against a document; an unknown field is a complaint, too."""
    errors = Draft202012Validator(schemas(name)[kind]).iter_errors(document)
    return [f"{error.json_path}: {error.message}" for error in errors]
