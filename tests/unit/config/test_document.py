"""The reference page, the template and the JSON schema come from the key table."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from srm_spark.config import keys, keys_connector, keys_process
from srm_spark.config.document import json_schema, template, with_generated_part
from srm_spark.config.keys_client import CLIENT_KEYS
from srm_spark.config.schema import KeyEffect
from tests.unit.config.conftest import Loader, problems

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"
SRM_KEYS = (Path(__file__).parent / "samples" / "srm-keys.txt").read_text().split()


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_generated_part(text) == text, "run: python -m srm_spark.config.document docs/configuration.md"


def test_every_key_has_one_row_that_says_something() -> None:
    names = [key.name for key in keys.TABLE]
    assert len(names) == len(set(names))
    text = PAGE.read_text(encoding="utf-8")
    for name in (*names, *CLIENT_KEYS):
        assert f"| `{name}` |" in text
    assert all(key.does for key in keys.TABLE)


def test_every_key_of_srm_is_in_the_table() -> None:
    assert [name for name in SRM_KEYS if name not in keys.BY_NAME] == []


def test_what_is_said_to_be_srms_is_srms() -> None:
    """The rows of MirrorMaker 2 are compared with its own classes, in tests/spark."""
    ours = {"dialect", "config.resolver.class", "dedicated.mode.enable.internal.rest", "client_config_root_dir"}
    ours |= {keys_process.LISTENER_KEY, keys_process.PARTITIONS_KEY}
    rows = (*keys_process.TOP, *keys_process.SERVICE, *keys_connector.SRM_CONNECTOR)
    assert {row.name for row in rows} - set(SRM_KEYS) == ours


def test_ignored_keys_say_why() -> None:
    assert all(len(key.does) > 10 for key in keys.TABLE if key.effect in (KeyEffect.IGNORED, KeyEffect.REFUSED))


def test_the_template_loads_as_it_is_and_with_every_line_switched_on(loaded: Loader) -> None:
    assert problems(loaded(template(), base="")) == []
    uncommented = re.sub(r"^# ([\w>.-]+ = )", r"\1", template(), flags=re.MULTILINE)
    on = re.sub(r"^A\.(security|sasl|ssl).*\n", "", uncommented, flags=re.MULTILINE)
    found = loaded(on.replace("A->B.enabled = false", ""), base="")
    assert problems(found) == []
    assert found.settings.warnings == ()


@pytest.mark.parametrize("name", ["topics", "offset.lag.max", "emit.heartbeats.enabled", "flow.retry.count"])
def test_the_schema_knows_the_keys(name: str) -> None:
    schema = json.loads(json.dumps(json_schema()))
    (flow, _) = schema["patternProperties"].values()
    assert schema["properties"][name]["description"]
    assert flow["properties"][name] == schema["properties"][name]


def test_an_editor_accepts_the_example_and_marks_what_is_wrong() -> None:
    check = jsonschema.Draft202012Validator(json_schema())
    check.check_schema(check.schema)
    example = yaml.safe_load((PAGE.parents[1] / "conf" / "example.yaml").read_text())
    assert list(check.iter_errors(example)) == []
    example["east->west"] |= {"enabled": "yes", "offset.lag.max": -1}
    example["offset-syncs.topic.location"] = "middle"
    marked = {tuple(error.path) for error in check.iter_errors(example)}
    assert marked == {
        ("east->west", "enabled"),
        ("east->west", "offset.lag.max"),
        ("offset-syncs.topic.location",),
    }
