"""Rules of principals mean what Kafka's own class makes of them."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

from srm_spark.core.principal_rules import RuleError, read_rules

JUDGE = Path(__file__).parents[1] / "java" / "PrincipalJudge.java"
RULES = [
    "DEFAULT",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/",
    "RULE:^CN=(.*?),OU=(.*?)(,.*)?$/$1@$2/L",
    "RULE:^([a-z]+)$/$1$2/U",
    r"RULE:^(.+)\/(.+)$/$2\/$1/",
    r"RULE:^x{1,2}$/\$1,y/",
    "RULE:^(a)(b)?c$/[$1$2]/",
    "RULE:a/b",
    "x",
]
NAMES = ["CN=Ann,OU=ServiceUsers,O=x", "CN=Bob,OU=IT", "ann", "a/b", "xx", "ac", "abc", "Ann Ö"]


def test_rules_of_principals_are_kafkas(java_judge: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    chance = random.Random(7)
    asked = [(rule, name) for rule in RULES for name in NAMES]
    for _ in range(100):
        several = chance.choice([",", ", ", " , "]).join(chance.sample(RULES, chance.randint(2, 4)))
        asked.append((several, chance.choice(NAMES)))
    judged = java_judge(JUDGE, *[word for pair in asked for word in pair]).stdout.splitlines()
    assert dict(zip(asked, judged, strict=True)) == {pair: said(*pair) for pair in asked}


def said(rules: str, name: str) -> str:
    """In the judge's words."""
    try:
        found = read_rules(rules).apply(f"User:{name}")
    except RuleError:
        return "!"
    return "-" if found is None else f"={found.removeprefix('User:')}"
