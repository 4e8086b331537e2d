"""Cuts published schemas down to what documents use: `python -m tests.schemas.trim NAME SOURCE DOCUMENT…`.

| NAME | SOURCE |
|---|---|
| `kubernetes` | a folder of JSON schemas with a `_definitions.json`, the strict ones |
| `emr`, `emr-serverless` | a `service-2.json` or `.json.gz` of botocore; documents are called `OPERATION.json` |

A field that no document has is cut off, unless it is required; what is left is as strict as before, and every other
field is refused. So a document that passes the cut schema passes the whole one; one with a new field needs a new cut.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

Schema = dict[str, Any]
Resolve = Callable[[Mapping[str, Any]], Mapping[str, Any]]
_KEPT = ("type", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "format")


def cut(schema: Mapping[str, Any], documents: Sequence[Any], resolve: Resolve) -> Schema:
    """The part of `schema` that `documents` use, without references."""
    schema = resolve(schema)
    made: Schema = {key: schema[key] for key in _KEPT if key in schema}
    if choices := schema.get("oneOf") or schema.get("anyOf"):
        made["anyOf"] = [cut(choice, documents, resolve) for choice in choices]
    if "items" in schema:
        made["items"] = cut(schema["items"], [item for each in documents for item in each], resolve)
    if "properties" in schema:
        required = schema.get("required", [])
        used = [name for name in schema["properties"] if name in required or any(name in each for each in documents)]
        below = {name: [each[name] for each in documents if name in each] for name in used}
        made["properties"] = {name: cut(schema["properties"][name], below[name], resolve) for name in used}
        made |= {"required": required, "additionalProperties": False}
    elif isinstance(schema.get("additionalProperties"), Mapping):
        values = [value for each in documents for value in each.values()]
        made["additionalProperties"] = cut(schema["additionalProperties"], values, resolve)
    return made


def kubernetes(folder: Path, documents: Sequence[Any]) -> Schema:
    """Kind → schema."""
    definitions = json.loads((folder / "_definitions.json").read_text())["$defs"]

    def resolve(schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in schema:
            schema = definitions[schema["$ref"].rpartition("/")[2]]
        return schema

    def whole(kind: str) -> Schema:
        own = [one for one in documents if one["kind"] == kind]
        group, _, version = own[0]["apiVersion"].rpartition("/")
        name = "-".join(filter(None, (kind.lower(), group.partition(".")[0], version)))
        return cut(json.loads((folder / f"{name}.json").read_text()), own, resolve)

    return {kind: whole(kind) for kind in dict.fromkeys(one["kind"] for one in documents)}


def botocore(path: Path, documents: Mapping[str, Any]) -> Schema:
    """Operation → schema of its request."""
    model = json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_text())
    shapes = model["shapes"]

    def resolve(schema: Mapping[str, Any]) -> Mapping[str, Any]:
        return _of_shape(shapes[schema["shape"]]) if "shape" in schema else schema

    return {
        operation: cut({"shape": model["operations"][operation]["input"]["shape"]}, [document], resolve)
        for operation, document in documents.items()
    }


def _of_shape(shape: Mapping[str, Any]) -> Schema:
    """A shape of AWS in words of JSON schema; its members stay shapes."""
    kind = shape["type"]
    if kind == "structure":
        given = [name for name, member in shape["members"].items() if member.get("idempotencyToken")]
        required = [name for name in shape.get("required", []) if name not in given]  # clients make it themselves
        return {"type": "object", "properties": shape["members"], "required": required}
    if kind == "list":
        return {"type": "array", "items": shape["member"]}
    if kind == "map":
        return {"type": "object", "additionalProperties": shape["value"]}
    if kind in ("boolean", "string"):
        names = {"min": "minLength", "max": "maxLength", "pattern": "pattern", "enum": "enum"}
        own = {name: shape[key] for key, name in names.items() if key in shape and kind == "string"}
        if "pattern" in own:  # the whole text is meant; one with pairs of surrogates is none of Python's
            pattern = own.pop("pattern")
            own |= {} if "\\uD800" in pattern else {"pattern": f"^(?:{pattern})$"}
        return {"type": kind, **own}
    whole = {"type": "integer" if kind in ("integer", "long") else "number"}
    return {**whole, **{name: shape[key] for key, name in (("min", "minimum"), ("max", "maximum")) if key in shape}}


def main(name: str, source: str, *paths: str) -> None:
    """Prints the schemas."""
    if name == "kubernetes":
        documents = [one for path in paths for one in yaml.safe_load_all(Path(path).read_text()) if one]
        made = kubernetes(Path(source), documents)
    else:
        made = botocore(Path(source), {Path(path).stem: json.loads(Path(path).read_text()) for path in paths})
    print(json.dumps({"schemas": made}, separators=(",", ":")))


if __name__ == "__main__":
    main(*sys.argv[1:])
