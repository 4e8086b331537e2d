"""Services say on their targets where they are, and others read that: renewed, taken back, through failures."""

from __future__ import annotations

import logging
import time

import pytest

from srm_spark.config.settings import AdvertisedSettings, ServiceSettings
from srm_spark.core.advertised import TOPIC, Address, Advertisement, encode
from srm_spark.core.cluster import ControlRecord
from srm_spark.errors import TargetUnavailable
from srm_spark.look.advertiser import Advertisements, Advertiser, own_address
from srm_spark.look.sites import Site, SiteReader, SiteReaders
from tests.awaiting import await_until
from tests.memory_cluster import MemoryCluster
from tests.unit.memory_flow import flow_settings

SAID = Advertisement("B", Address("http", "srm.b.example", 6670), 30.0)


class Target:
    """Cluster B, what is known of its services, and who reads that."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster("B", TargetUnavailable)
        self.site = Site("B")
        self.reader = SiteReader(self.site, self.cluster)

    @property
    def urls(self) -> list[str]:
        self.reader.look()
        return [one.said.address.url for one in self.site.heard()]

    def write(self, key: bytes, value: bytes | None, at: int) -> None:
        record = ControlRecord(TOPIC, key, value, partition=0, timestamp=at)
        self.cluster.writer("test", TargetUnavailable).write([record])


@pytest.mark.parametrize(
    ("service", "is_local", "url"),
    [
        (ServiceSettings(), True, None),
        (ServiceSettings(host="0.0.0.0"), False, "http://here.example:6670"),
        (ServiceSettings(host="::", port=80, certificate="c.pem", key="k.pem"), False, "https://here.example:80"),
        (ServiceSettings(host="srm.example"), False, "http://srm.example:6670"),
        (ServiceSettings(host="fd00::7"), False, "http://[fd00::7]:6670"),
        (ServiceSettings(advertised=AdvertisedSettings(host="proxy")), True, "http://proxy:6670"),
        (
            ServiceSettings(host="srm", advertised=AdvertisedSettings("https", "proxy", 443, "/srm")),
            False,
            "https://proxy:443/srm",
        ),
    ],
)
def test_where_others_find_it(service: ServiceSettings, is_local: bool, url: str | None) -> None:
    found = own_address(service, is_local=is_local, name=lambda: "here.example")
    assert (None if found is None else found.url) == url


def test_a_service_is_found_as_long_as_it_runs() -> None:
    target = Target()
    assert target.urls == []
    assert target.site.why_not is None
    assert target.site.cluster_id == "id-of-B"
    advertisements = Advertisements(SAID, target.cluster, 1)
    advertisements.renew()
    assert target.urls == ["http://srm.b.example:6670"]
    assert target.cluster.held[TOPIC].configs["cleanup.policy"] == "compact"
    assert target.cluster.held[TOPIC].configs["message.timestamp.type"] == "LogAppendTime"
    (heard,) = target.site.heard()
    assert not heard.is_old(int(time.time() * 1000))
    advertisements.withdraw()
    assert target.urls == []


def test_one_that_cannot_be_told_is_told_of_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    target = Target()
    target.cluster.forbidden[TOPIC] = "not authorized"
    advertisements = Advertisements(SAID, target.cluster, 1)
    with caplog.at_level(logging.WARNING):
        advertisements.renew()
        advertisements.renew()
    assert len(caplog.records) == 1
    assert "not authorized" in caplog.text
    target.cluster.forbidden.clear()
    advertisements.renew()
    assert target.urls == [SAID.address.url]
    target.cluster.down = "it is gone"
    advertisements.renew()
    advertisements.withdraw()
    target.cluster.down = None
    assert target.urls == [SAID.address.url]
    advertisements.withdraw()
    assert target.urls == []


def test_what_was_read_counts_while_the_cluster_is_away() -> None:
    target = Target()
    Advertisements(SAID, target.cluster, 1).renew()
    assert target.urls == [SAID.address.url]
    target.cluster.down = "it is gone"
    assert target.urls == [SAID.address.url]
    assert "it is gone" in str(target.site.why_not)
    target.cluster.down = None
    assert target.urls == [SAID.address.url]
    assert target.site.why_not is None


def test_the_newest_comes_first_and_garbage_takes_nothing() -> None:
    target = Target()
    Advertisements(SAID, target.cluster, 1).renew()
    other = Advertisement("B", Address("https", "two", 1), 30.0)
    target.write(*encode(other), at=10)
    target.write(b"garbage", b"garbage", at=11)
    target.write(encode(other)[0].replace(b"two", b"six"), encode(other)[1], at=12)
    assert target.urls == [SAID.address.url, "https://two:1"]


def test_services_that_call_the_cluster_otherwise_are_none_of_this_site() -> None:
    target = Target()
    Advertisements(Advertisement("west", SAID.address, 30.0), target.cluster, 1).renew()
    assert target.urls == []
    assert target.site.other_names() == {"west"}


def test_a_topic_that_was_made_anew_is_read_anew() -> None:
    target = Target()
    Advertisements(SAID, target.cluster, 1).renew()
    assert target.urls == [SAID.address.url]
    target.cluster.delete(TOPIC)
    other = Advertisement("B", Address("https", "two", 1), 30.0)
    advertisements = Advertisements(other, target.cluster, 1)
    advertisements.renew()
    advertisements.renew()
    await_until(lambda: target.urls == ["https://two:1"], 15.0, lambda: str(target.site))


def test_threads_renew_and_take_back() -> None:
    cluster, site = MemoryCluster("B", TargetUnavailable), Site("B")
    settings = flow_settings()
    readers = SiteReaders([site], [settings.target], lambda _: cluster)
    advertiser = Advertiser(SAID.address, [settings, settings], every=0.1, reach=lambda _: cluster)
    readers.start()
    advertiser.start()
    try:
        await_until(site.heard, 10.0, "nobody was heard")
        (heard,) = site.heard()
        assert heard.said == Advertisement("B", SAID.address, 0.1)
        await_until(lambda: [one.at for one in site.heard()] > [heard.at], 10.0, "it is not renewed")
    finally:
        advertiser.stop()
    await_until(lambda: not site.heard(), 10.0, "it was not taken back")
    readers.stop()
