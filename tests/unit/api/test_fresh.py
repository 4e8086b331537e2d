"""Who polls is told that nothing has changed, as long as that is so, and as long as it is he who was answered."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from srm_spark.api.app import make_app
from srm_spark.api.roles import Role
from srm_spark.core.metrics import PartitionSample
from srm_spark.core.model import TopicPartition
from tests.unit.api.acting import Site
from tests.unit.api.boards import AB, NOW, Filled, three_flows
from tests.unit.api.logins import login, users_of

POLLED = (
    "/",
    "/flows/A/B",
    "/v3/flows",
    "/v3/flows/A/B",
    "/v3/flows/A/B/topics",
    "/v3/flows/A/B/partitions",
    "/v3/flows/A/B/groups",
    "/v3/flows/A/B/history/byte-rate",
)
IN_RANGE = [path for path in POLLED if not path.endswith(("partitions", "groups"))]


@pytest.fixture
def filled() -> Filled:
    return three_flows()


def asking(filled: Filled) -> TestClient:
    return TestClient(make_app(filled.board), base_url="http://localhost")


def again(client: TestClient, path: str, tag: str, **headers: str) -> int:
    answer = client.get(path, headers={"if-none-match": tag, **headers})
    assert (answer.status_code == 304) == (not answer.content)
    return answer.status_code


@pytest.mark.parametrize("path", POLLED)
def test_what_has_not_changed_is_not_sent_again(filled: Filled, path: str) -> None:
    client = asking(filled)
    first = client.get(path)
    tag = first.headers["etag"]
    assert (first.headers["cache-control"], first.headers["vary"]) == ("private, no-cache", "Authorization, Cookie")
    unchanged = client.get(path, headers={"if-none-match": tag})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert {name: unchanged.headers[name] for name in ("etag", "vary", "x-frame-options")} == {
        "etag": tag,
        "vary": "Authorization, Cookie",
        "x-frame-options": "DENY",
    }
    assert "content-length" not in unchanged.headers
    assert again(client, path, f'"other", {tag.removeprefix("W/")}') == 304
    assert again(client, path, "*") == 304
    assert again(client, path, '"other"') == 200
    filled.take(PartitionSample(AB, NOW + 1000, 1.0, TopicPartition("orders", 0), "A.orders", state="running"))
    assert again(client, path, tag) == 200  # though the flow as such is as it was


@pytest.mark.parametrize("path", POLLED)
def test_what_only_time_changes_is_a_change(filled: Filled, path: str) -> None:
    client = asking(filled)
    tag = client.get(path).headers["etag"]
    filled.clock.pass_by(600)  # its driver is silent meanwhile
    assert again(client, path, tag) == 200
    tag = client.get(path).headers["etag"]
    filled.board.lost("B", "it is away")
    assert again(client, path, tag) == 200


@pytest.mark.parametrize("path", IN_RANGE)
def test_a_range_moves_on_by_its_buckets(filled: Filled, path: str) -> None:
    client = asking(filled)
    tag = client.get(path).headers["etag"]
    filled.clock.pass_by(2)
    assert again(client, path, tag) == 304
    filled.clock.pass_by(15)
    assert again(client, path, tag) == 200


def test_metadata_and_what_is_forgotten_are_changes(filled: Filled) -> None:
    versions = [filled.board.version(AB)]
    filled.board.take_meta(AB, "orders", None)
    versions.append(filled.board.version(AB))
    filled.board.clear(AB)
    versions.append(filled.board.version(AB))
    filled.report(AB, NOW + 5000)
    filled.live()
    versions.append(filled.board.version(AB))
    filled.live()
    assert filled.board.version(AB) == versions[-1]
    filled.clock.pass_by(3 * 3600)
    filled.live()
    versions.append(filled.board.version(AB))
    assert sorted(set(versions)) == versions


def test_topics_are_those_of_the_newest_word(filled: Filled) -> None:
    def topics() -> list[str]:
        with filled.board.series(AB) as series:
            return [one.name for one in series.topics()]

    assert topics() == ["orders", "payments"]
    filled.take(PartitionSample(AB, NOW + 1000, 1.0, TopicPartition("new", 0), "A.new", state="running"))
    assert topics() == ["new", "orders", "payments"]
    filled.board.take_meta(AB, "orders", None)
    assert topics() == ["new", "payments"]
    filled.clock.pass_by(3 * 3600)
    filled.live()
    assert topics() == []
    filled.board.clear(AB)
    assert topics() == []


def test_another_user_another_role_and_another_process_have_tags_of_their_own(filled: Filled) -> None:
    tags = set()
    for users in (users_of(ann="", bob=""), users_of(ann="A->B=operator", bob="")):
        client = TestClient(make_app(filled.board, users), base_url="http://localhost")
        for name in ("ann", "bob"):
            tags.add(client.get("/flows/A/B", headers=login(f"{name}:{name}")).headers["etag"])
            assert again(client, "/flows/A/B", "*", **login(f"{name}:{name}")) == 304
        assert again(client, "/flows/A/B", "*") == 401
    assert len(tags) == 4


def test_what_is_wrong_is_told_whatever_is_known(tmp_path: Path) -> None:
    client = Site(tmp_path, anonymous=Role.VIEWER).client
    assert again(client, "/v3/flows/A/X", "*") == 404
    assert again(client, "/v3/flows/A/B/topics?limit=0", "*") == 400
