"""Finds code that decides by the words of a failure. Kinds are for that (`srm_spark/failure.py`); words are for people.

`python -m tests.lint.wordings [FOLDER]` prints each place as file:line and ends with 1 where there is one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

WORDS = frozenset({"reason", "reasons", "failure", "failures", "sentence", "refusal", "why", "cause"})
"""Names of variables and attributes that hold a sentence."""
QUESTIONS = frozenset({"startswith", "endswith", "find", "rfind", "index", "count", "removeprefix"}) | frozenset(
    {"split", "rsplit", "partition", "rpartition", "splitlines"}
)
"""Methods of a string that look into it."""
SEARCHES = frozenset({"match", "search", "fullmatch", "findall", "finditer", "sub"})
"""Functions of `re`, and methods of patterns."""
ALLOWED = frozenset({"core/failure_wordings.py", "spark/failures.py", "core/wording.py"})
"""What was recorded before there were kinds; what Java's clients throw, told to people; how texts are laid out."""


def found_in(source: str) -> Iterator[int]:
    """Lines of a module at which a failure's words are looked into."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            looks = node.func.attr in QUESTIONS and _is_sentence(node.func.value)
            searches = node.func.attr in SEARCHES and any(map(_is_sentence, node.args))
            if looks or searches:
                yield node.lineno
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            is_in = any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops)
            text = any(map(_is_text, sides))
            if (text and any(map(_is_sentence, sides))) or (is_in and text and _is_sentence(node.comparators[-1])):
                yield node.lineno


def _is_sentence(node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        return node.id in WORDS
    if isinstance(node, ast.Attribute):
        return node.attr in WORDS
    if isinstance(node, ast.Call):  # str(error), reason(…), found.reason()
        is_str = isinstance(node.func, ast.Name) and node.func.id == "str"
        is_error = is_str and any(isinstance(a, ast.Name) and a.id in {"error", *WORDS} for a in node.args)
        return is_error or (is_str and any(map(_is_sentence, node.args)))
    return False


def _is_text(node: ast.expr) -> bool:
    is_name = isinstance(node, ast.Attribute) and node.attr == "__name__"
    return (
        is_name or isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    )


def main(folder: Path) -> int:
    """Print the places below `folder`."""
    places = [
        f"{path}:{line}: decides by the words of a failure; give it a kind, see srm_spark/failure.py"
        for path in sorted(folder.rglob("*.py"))
        if path.relative_to(folder).as_posix() not in ALLOWED
        for line in found_in(path.read_text())
    ]
    print(*places, sep="\n", end="\n" if places else "")
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "srm_spark")))
