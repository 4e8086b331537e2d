"""Finds tests that lean on what is none of theirs: on other test modules, and on private names that they replace.

What several tests need is a helper in a module without `test_` in front. What a test has to replace gets a seam in the
product: a parameter, or a public name.

`python -m tests.lint.seams [FOLDER]` prints each place as file:line and ends with 1 where there is one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PATCHES = frozenset({"setattr", "delattr", "patch", "object"})
"""Functions that replace something: of pytest's monkeypatch, of unittest.mock, and Python's own."""

ALLOWED = frozenset({"raw_records.py"})
"""Reads the bytes of a header's name, which kafka-python gives to nobody."""


def found_in(source: str) -> Iterator[tuple[int, str]]:
    """Lines of a module of tests, and what is wrong with them."""
    for node in ast.walk(ast.parse(source)):
        line = getattr(node, "lineno", 0)
        if (name := _test_module(node)) is not None:
            yield line, f"imports from the tests of {name}; move what both need into a helper"
        if (name := _private(node)) is not None:
            yield line, f"replaces the private {name}; give it a seam: a parameter, or a public name"


def _test_module(node: ast.AST) -> str | None:
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = [f"{node.module or ''}.{alias.name}" for alias in node.names]
        if not node.level and (node.module or "").split(".")[0] != "tests":
            names = []
    return next((name for name in names if any(part.startswith("test_") for part in name.split("."))), None)


def _private(node: ast.AST) -> str | None:
    if isinstance(node, ast.Call):
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        if name in PATCHES:
            texts = [each.value for each in node.args[:2] if isinstance(each, ast.Constant)]
            return next((text for text in texts if isinstance(text, str) and _is_private(text)), None)
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    for target in targets:
        if isinstance(target, ast.Attribute) and _is_private(target.attr) and not _is_own(target.value):
            return target.attr
    return None


def _is_own(owner: ast.expr) -> bool:
    return isinstance(owner, ast.Name) and owner.id in {"self", "cls"}


def _is_private(path: str) -> bool:
    return any(part.startswith("_") and not part.startswith("__") for part in path.split("."))


def main(folder: Path) -> int:
    """Print the places below `folder`."""
    places = [
        f"{path}:{line}: {what}"
        for path in sorted(folder.rglob("*.py"))
        if path.relative_to(folder).as_posix() not in ALLOWED
        for line, what in found_in(path.read_text())
    ]
    print(*places, sep="\n", end="\n" if places else "")
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "tests")))
