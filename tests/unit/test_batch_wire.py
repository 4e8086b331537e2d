"""Fetch requests and answers to the byte, against kafka-python's own encoding."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from kafka.protocol.consumer import FetchRequest, FetchResponse

from srm_spark.kafka.batches.wire import (
    FETCH_BY_ID,
    FETCH_BY_NAME,
    SessionNote,
    TopicKey,
    Wanted,
    fetch_answer,
    fetch_body,
)

TOPIC_ID = uuid.UUID(int=7)
VERSIONS = pytest.mark.parametrize(
    ("version", "topic"), [(FETCH_BY_ID, TOPIC_ID.bytes), (FETCH_BY_NAME, "täglich")], ids=["by id", "by name"]
)


def named(topic: TopicKey) -> dict[str, Any]:
    return {"topic": topic} if isinstance(topic, str) else {"topic_id": uuid.UUID(bytes=topic)}


@VERSIONS
def test_a_request(version: int, topic: TopicKey) -> None:
    of_topic = FetchRequest.FetchTopic
    place = of_topic.FetchPartition(
        partition=3,
        current_leader_epoch=2,
        fetch_offset=9,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=77,
    )
    expected = FetchRequest(
        replica_id=-1,
        max_wait_ms=50,
        min_bytes=1,
        max_bytes=1000,
        isolation_level=1,
        session_id=0,
        session_epoch=-1,
        topics=[of_topic(partitions=[place], **named(topic))],
        forgotten_topics_data=[],
        rack_id="r1",
    )
    body = fetch_body({topic: [Wanted(3, 2, 9, 77)]}, 50, 1000, "r1", committed=True)
    assert body == bytes(expected.encode(version=version))
    expected.session_id, expected.session_epoch = 17, 4
    expected.forgotten_topics_data = [FetchRequest.ForgottenTopic(partitions=[5, 600], **named(topic))]
    note = SessionNote(17, 4, {topic: [5, 600]})
    body = fetch_body({topic: [Wanted(3, 2, 9, 77)]}, 50, 1000, "r1", committed=True, session=note)
    assert body == bytes(expected.encode(version=version))


@VERSIONS
def test_an_answer(version: int, topic: TopicKey) -> None:
    of_topic = FetchResponse.FetchableTopicResponse
    place = of_topic.PartitionData(
        partition_index=3,
        error_code=0,
        high_watermark=12,
        last_stable_offset=11,
        log_start_offset=0,
        aborted_transactions=[],
        preferred_read_replica=-1,
        records=b"batches",
    )
    response = FetchResponse(
        throttle_time_ms=5,
        error_code=0,
        session_id=9,
        responses=[of_topic(partitions=[place], **named(topic))],
    )
    # Behind the tagged fields of its header.
    data = memoryview(b"\0" + bytes(response.encode(version=version)))
    answer = fetch_answer(data, is_by_id=version == FETCH_BY_ID)
    assert (answer.throttled_ms, answer.error, answer.session) == (5, 0, 9)
    (found,) = answer.partitions
    assert (found.topic, found.partition, bytes(found.records)) == (topic, 3, b"batches")
    assert [found.readable_end(committed) for committed in (True, False)] == [11, 12]
