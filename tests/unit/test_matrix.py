"""What a run under another Spark has found, and the page that tells it."""

from __future__ import annotations

import json
from pathlib import Path

from srm_spark.jars.manifest import DRIVERS
from tests.matrix.areas import AREAS, FEW, PAIRS, Pair
from tests.matrix.page import keep
from tests.matrix.run import is_good, results

ROOT = Path(__file__).parents[2]
REPORT = """<testsuites><testsuite>
<testcase classname="tests.broker.test_groups" name="test_a"/>
<testcase classname="tests.broker.test_groups" name="test_b"><failure message="no">no</failure></testcase>
<testcase classname="tests.broker.test_groups" name="test_c"><skipped message="no"/></testcase>
<testcase classname="tests.broker.test_groups_left_out" name="test_d"/>
<testcase classname="tests.broker.test_lane" name="test_e"><error message="no">no</error></testcase>
</testsuite></testsuites>"""


def test_each_area_has_files_that_are_there() -> None:
    assert [file for files in AREAS.values() for file in files if not (ROOT / file).is_file()] == []
    assert set(FEW) <= AREAS.keys()
    assert [pair.spark for pair in PAIRS] == list(DRIVERS)


def test_results_are_counted_by_area(tmp_path: Path) -> None:
    files = {"tests/broker/test_groups.py": "groups", "tests/broker/test_lane.py": "lane", "tests/broker/x.py": "none"}
    (tmp_path / "report.xml").write_text(REPORT)
    found = results(tmp_path / "report.xml", files)
    assert found == {"groups": {"passed": 1, "failed": 1, "skipped": 1}, "lane": {"failed": 1}, "none": {}}
    assert [is_good(one) for one in found.values()] == [False, False, False]
    assert is_good({"passed": 1, "skipped": 3})
    assert not is_good({"skipped": 3}), "nothing was tried"
    assert results(tmp_path / "missing.xml", files) == {"groups": {}, "lane": {}, "none": {}}


def test_what_was_found_before_stays_beside_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- by make matrix -->\nold\n<!-- end -->\nbehind\n")
    ran = {"spark": "3.5.9", "python": "3.10.13", "pyarrow": "25.0.1", "at": "2026-11-28"}
    first, second = list(AREAS)[:2]
    keep(PAIRS[0], {"ran": ran, "areas": {first: {"passed": 2}}}, page)
    keep(PAIRS[0], {"ran": ran, "areas": {second: {"passed": 1, "failed": 1}}}, page)
    keep(Pair("4.0", "3.12"), {"ran": {**ran, "spark": "4.0.2"}, "areas": {first: {"skipped": 1}}}, page)
    text = page.read_text()
    assert text.startswith("before\n<!-- by make matrix -->\n| | Spark 3.5.9, Python 3.10.13 | Spark 4.0.2, ")
    assert f"| {first} | 2 passed | 1 skipped |" in text
    assert f"| {second} | 1 failed, 1 passed | not run |" in text
    assert text.endswith("<!-- end -->\nbehind\n")
    assert "old" not in text
    assert json.loads((tmp_path / "page.json").read_text())["3.5"]["areas"].keys() == {first, second}
    keep(PAIRS[0], {"ran": {**ran, "spark": "3.5.10"}, "areas": {first: {"passed": 3}}}, page)
    assert f"| {second} | not run | not run |" in page.read_text(), "of another Spark they say nothing"
