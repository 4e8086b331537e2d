"""Who asks whether topics are the same."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from srm_spark.kafka import topic_ids
from srm_spark.kafka.clients import LastError
from srm_spark.kafka.topic_ids import TopicIds


class Client:
    """Knows each topic by the id `id`; its length is 0, as that of the library's."""

    made = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        Client.made += 1

    def __len__(self) -> int:
        return 0

    def describe_topics(self, asked: Any, **_: Any) -> Mapping[str, Future[Any]]:
        future: Future[Any] = Future()
        future.set_result(SimpleNamespace(topic_id="id"))
        return {"t": future}


def test_one_client_answers_all_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_ids, "AdminClient", Client)
    asking = TopicIds({"bootstrap.servers": "nowhere:1"}, LastError())
    for _ in range(3):
        asking.check({"t": "id"}, "a", 5.0)
    assert Client.made == 1
