"""All flows of all sites by one service: live where a site answers, unknown with the reason where it does not, and
never late for it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from srm_spark.api.app import make_app
from srm_spark.api.gateway import DEADLINE_SECONDS, Gateway
from srm_spark.api.site_call import CallFailed, Client, SiteFailure, trusting
from srm_spark.api.told import flows_told
from srm_spark.api.watching import table_watch
from srm_spark.config.settings import RemoteSettings
from srm_spark.core.advertised import Address, Advertisement, HeardAdvertisement, key_of
from srm_spark.core.model import Flow
from srm_spark.core.series import Span
from srm_spark.errors import ConfigError
from srm_spark.look.sites import Site
from tests.awaiting import await_until
from tests.certificates import Identity, identity
from tests.unit.api.boards import AB, NOW, Clock, Filled
from tests.unit.api.gateways import AC, AD, AE, AF, GATE, PATIENT, filled, gateway_of
from tests.unit.api.logins import JSON, login, users_of
from tests.unit.api.sites import HOST, Counted, answering, served, site_at, trickling, unused_port

SPAN = Span(NOW - 3_600_000, NOW + 1)
WRONG = "geheim-und-falsch"


def client_of(gateway: Gateway | None, board: Filled | None = None) -> TestClient:
    app = ready(make_app((board or filled(AB)).board, gateway=gateway))
    return TestClient(app, base_url="http://localhost")


def site_app(*flows: Flow, user: str = "gate") -> FastAPI:
    return ready(make_app(filled(*flows).board, users_of(**{user: "viewer"})), user)


def ready(app: FastAPI, user: str = "nobody") -> FastAPI:
    """With its routes built, which two applications of one process must not do at a time."""
    TestClient(app, headers=login(f"{user}:{user}"), base_url="http://localhost").get("/nothing-is-there")
    return app


def ok(client: TestClient, path: str, **arguments: Any) -> Any:
    answer = client.get(path, **arguments)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture(scope="module")
def four() -> Iterator[TestClient]:
    """A gateway with flow A->B, and sites: C is well, D is dead, E hangs, and in F our password is wrong."""
    with ExitStack() as running:
        well = running.enter_context(served(site_app(AC)))
        slow, _ = running.enter_context(trickling(None))
        other = running.enter_context(served(site_app(AF, user="somebody-else")))
        sites = [site_at("C", well), site_at("D", unused_port()), site_at("E", slow), site_at("F", other)]
        gateway = gateway_of(*sites, expected=[AB, AC, AD, AE, AF], seconds=DEADLINE_SECONDS)
        yield running.enter_context(client_of(gateway))


def test_every_site_is_shown_and_none_is_waited_for_longer_than_its_time(four: TestClient) -> None:
    rounds = []
    for minutes in (27, 28, 29):  # whoever else is busy on this machine
        began = time.monotonic()
        document = ok(four, f"/v3/flows?minutes={minutes}")
        rounds.append((time.monotonic() - began, document))
    seconds, document = min(rounds, key=lambda one: one[0])
    assert seconds < 3.0
    flows = {one["flow"]: one for one in document["flows"]}
    assert list(flows) == ["A->B", "A->C", "A->D", "A->E", "A->F"]
    assert (flows["A->B"]["site"], flows["A->C"]["site"]) == (None, "C")
    mine, theirs = flows["A->B"], flows["A->C"]
    for name in ("status", "topics", "partitions", "groups", "lag", "figures", "heard_at", "state", "since"):
        assert theirs[name] == mine[name]
    assert theirs["figures"]["bytes_per_second"]["avg"] == 600.0
    kinds = {one["site"]: one["kind"] for one in document["sites"]}
    assert kinds == {"C": None, "D": "no-answer", "E": "slow", "F": "login-refused"}
    for name in ("A->D", "A->E", "A->F"):
        assert (flows[name]["status"], flows[name]["topics"], flows[name]["lag"]["records"]) == ("INACTIVE", None, None)
        assert flows[name]["figures"]["bytes_per_second"]["avg"] is None
    (site,) = [one for one in document["sites"] if one["site"] == "E"]
    assert "does not answer within 2 s" in site["why"]
    assert site["services"][0]["advertised_at"] == "2025-11-24T16:00:15+00:00"


def test_all_lists_have_all_flows(four: TestClient) -> None:
    replications = ok(four, "/replications?minutes=30")
    assert set(replications) == {"A->B", "A->C", "A->D", "A->E", "A->F"}
    mine, theirs = replications["A->B"], replications["A->C"]
    assert theirs["throughputBps"]["sum"] == pytest.approx(mine["throughputBps"]["sum"])
    assert theirs["replicationLatencyMs"]["latestTimestamp"] == mine["replicationLatencyMs"]["latestTimestamp"]
    assert replications["A->E"]["numTopics"] is None
    assert set(ok(four, "/replications?source=A")) == set(replications)
    assert four.get("/replications?source=Z").status_code == 404
    stats = ok(four, "/api/v1/admin/replication-stats?duration=LAST_ONE_HOUR")["clusterReplicationStatsEntryMap"]
    assert set(stats) == set(replications)
    assert stats["A->C"]["throughputBpsMetric"] == stats["A->B"]["throughputBpsMetric"]
    assert ok(four, "/v2/cluster-info/id-of-C")["alias"] == "C"
    assert set(ok(four, "/v3/flows?own=true")["flows"][0]["flow"].split()) == {"A->B"}
    assert len(ok(four, "/v3/flows?own=true")["flows"]) == 1


def test_the_page_links_to_the_page_of_the_site_and_says_what_is_unknown(four: TestClient) -> None:
    url = ok(four, "/v3/flows")["flows"][1]["site_url"]
    page = four.get("/", headers={"accept": "text/html"}).text
    assert f'href="{url}/flows/A/C?' in page
    assert 'href="/flows/A/B?' in page
    assert "Cluster Replications (5)" in page
    assert "site E: http://127.0.0.1" in page
    assert "does not answer within 2 s" in page
    assert "refuses the login of this service (401)" in page


def test_a_flow_of_another_site_is_steered_there(four: TestClient) -> None:
    url = ok(four, "/v3/flows")["flows"][1]["site_url"]
    for answer in (
        four.post("/v3/flows/A/C/pause", json={"reason": "x"}, headers=JSON),
        four.post("/v3/flows/A/C/lists/topics", json={"add": ["t"]}, headers=JSON),
        four.get("/v3/flows/A/C"),
        four.get("/v3/flows/A/C/topics"),
    ):
        document = answer.json()
        assert (answer.status_code, document["kind"]) == (409, "other-site")
        assert url in document["detail"]
    page = four.get("/flows/A/C", headers={"accept": "text/html"})
    assert (page.status_code, url in page.text) == (409, True)
    assert four.get("/v3/flows/A/Z").status_code == 404


def test_a_site_that_dies_is_unknown_since_it_answered_last() -> None:
    clock, port = Clock(), unused_port()
    client = client_of(gateway_of(site_at("C", port), clock=clock))
    with served(site_app(AC), port):
        assert ok(client, "/v3/flows")["flows"][1]["status"] == "ACTIVE"
    clock.pass_by(60)
    document = ok(client, "/v3/flows")
    flow, (site,) = document["flows"][1], document["sites"]
    assert (flow["flow"], flow["status"], flow["lag"]["records"]) == ("A->C", "INACTIVE", None)
    assert flow["unknown_since"] == site["answered_at"] == "2025-11-24T16:00:15+00:00"
    assert (site["kind"], "it answered last 60 s ago" in site["why"]) == ("no-answer", True)
    assert site["why"] in flow["why"][0]
    clock.pass_by(60)
    with served(site_app(AC), port):
        found = ok(client, "/v3/flows")["flows"][1]
    assert (found["status"], found["unknown_since"]) == ("ACTIVE", None)


def test_a_flow_that_a_site_tells_of_no_longer_is_gone() -> None:
    clock, port, other = Clock(), unused_port(), Flow("X", "C")
    client = client_of(gateway_of(site_at("C", port), clock=clock))
    with served(site_app(AC, other), port):
        assert len(ok(client, "/v3/flows")["flows"]) == 3
    clock.pass_by(60)
    with served(site_app(AC), port):
        assert [one["flow"] for one in ok(client, "/v3/flows")["flows"]] == ["A->B", "A->C"]


def test_what_a_site_says_of_flows_that_are_not_into_it_counts_for_nothing() -> None:
    with served(site_app(AB, AC, AD)) as port:
        document = ok(client_of(gateway_of(site_at("C", port))), "/v3/flows")
    assert [(one["flow"], one["site"]) for one in document["flows"]] == [("A->B", None), ("A->C", "C")]


def test_two_services_of_a_site_complete_each_other() -> None:
    other = Flow("X", "C")
    with served(site_app(AC)) as one, served(site_app(other)) as two:
        document = ok(client_of(gateway_of(site_at("C", one, two, unused_port()))), "/v3/flows")
    assert [(one["flow"], one["status"]) for one in document["flows"][1:]] == [("A->C", "ACTIVE"), ("X->C", "ACTIVE")]
    (site,) = document["sites"]
    assert site["kind"] is None
    assert sorted(str(one["kind"]) for one in site["services"]) == ["None", "None", "no-answer"]


def test_who_may_see_single_flows_sees_no_others_of_other_sites() -> None:
    other = Flow("X", "C")
    with served(site_app(AC, other)) as port:
        gateway = gateway_of(site_at("C", port), site_at("D"), expected=[AD])
        answers = gateway.only(lambda flow: flow == AC).begin(SPAN).answers()
        assert [[row.found.now.flow for row in one.flows] for one in answers] == [[AC]]
        assert [len(one.flows) for one in gateway.begin(SPAN).answers()] == [2, 1]
    assert gateway.where(other) is not None
    assert gateway.only(lambda flow: flow == AC).where(other) is None


def test_who_has_a_role_of_one_flow_sees_it_alone_here_and_elsewhere() -> None:
    other = Flow("X", "C")
    with served(site_app(AC, other)) as port:
        gateway = gateway_of(site_at("C", port))
        users = users_of(carol="A->C=viewer", victor="viewer", bob="A->B=viewer", olga="operator A->C=none")
        client = TestClient(ready(make_app(filled(AB).board, users, gateway=gateway)), base_url="http://localhost")
        seen = {
            name: [one["flow"] for one in ok(client, "/v3/flows", headers=login(f"{name}:{name}"))["flows"]]
            for name in ("carol", "victor", "bob", "olga")
        }
        hidden = client.get("/v3/flows/A/C", headers=login("olga:olga"))
    olga = ["A->B", "X->C"]
    assert seen == {"carol": ["A->C"], "victor": ["A->B", "A->C", "X->C"], "bob": ["A->B"], "olga": olga}
    assert hidden.status_code == 404


def test_nobody_asks_in_circles() -> None:
    here, there = unused_port(), unused_port()
    one = Counted(ready(make_app(filled(AB).board, gateway=gateway_of(site_at("C", there)))))
    own_of_two = Gateway(
        [site_at("B", here)], Client(RemoteSettings(("B",))).get, flows_told, own=[AC], seconds=PATIENT
    )
    two = Counted(ready(make_app(filled(AC).board, gateway=own_of_two)))
    with served(one, here), served(two, there):
        body = Client(RemoteSettings(())).get(Address("http", HOST, here), "/v3/flows?minutes=30", PATIENT)
    assert [str(row.now.flow) for row in flows_told(body, SPAN)] == ["A->B", "A->C"]
    assert one.asked == ["/v3/flows?minutes=30"]
    assert two.asked == ["/v3/flows?own=true&minutes=30"]


def test_a_range_means_the_same_under_another_clock_and_else_it_is_handed_on() -> None:
    app = Counted(site_app(AC))
    with served(app) as port:
        client = client_of(gateway_of(site_at("C", port)))
        ok(client, "/v3/flows")
        ok(client, f"/v3/flows?from={NOW - 600_000}&to={NOW - 300_000}")
    assert app.asked == [
        "/v3/flows?own=true&minutes=120",
        f"/v3/flows?own=true&from={NOW - 600_000}&to={NOW - 300_000}",
    ]


def test_an_old_advertisement_is_not_believed_without_its_age() -> None:
    clock = Clock()
    with served(site_app(AC)) as port:
        sites = [site_at("C", port), site_at("D", unused_port())]
        client = client_of(gateway_of(*sites, clock=clock, expected=[AD]))
        clock.pass_by(600)
        c, d = ok(client, "/v3/flows")["sites"]
        assert (c["kind"], d["kind"]) == (None, "no-answer")
        assert "answers, but has not renewed its advertisement for 10 min" in c["services"][0]["why"]
        assert "has not renewed its advertisement for 10 min" in d["why"]
        clock.pass_by(86_400)
        document = ok(client, "/v3/flows")
    c, d = document["sites"]
    assert (c["kind"], c["services"]) == ("no-advertisement", [])
    assert "its newest advertisement is 24.2 h old" in c["why"]
    flows = {one["flow"]: one for one in document["flows"]}
    assert flows["A->C"]["unknown_since"] is not None
    assert flows["A->D"]["unknown_since"] is None


def test_a_site_without_services_or_whose_cluster_is_away_is_unknown() -> None:
    away = Site("D", why_not="cluster D (d:1): it does not answer")
    document = ok(client_of(gateway_of(site_at("C"), away, expected=[AC, AD])), "/v3/flows")
    assert [one["kind"] for one in document["sites"]] == ["no-advertisement", "no-cluster"]
    assert "no service says on that cluster where it is" in document["sites"][0]["why"]
    assert "cluster D (d:1)" in document["flows"][2]["why"][0]
    site = site_at("C")
    said = Advertisement("west", Address("http", HOST, 1), 30.0)
    site.take(key_of(said), HeardAdvertisement(said, NOW))
    (other,) = gateway_of(site).begin(SPAN).answers()
    assert (other.kind, "call that cluster west" in str(other.why)) == (SiteFailure.NO_ADVERTISEMENT, True)
    answer = client_of(gateway_of(site, expected=[AC])).get("/v3/flows/A/C")
    assert "whose address is not known here now" in answer.json()["detail"]


def test_a_wrong_password_is_not_tried_until_it_is_locked_out() -> None:
    clock = Clock()
    app = Counted(site_app(AC, user="somebody-else"))
    with served(app) as port:
        client = client_of(gateway_of(site_at("C", port), clock=clock))
        for _ in range(6):
            assert ok(client, "/v3/flows")["sites"][0]["kind"] == "login-refused"
            clock.pass_by(10)
        assert len(app.asked) == 1
        clock.pass_by(90)
        ok(client, "/v3/flows")
        assert len(app.asked) == 2


def test_secrets_are_in_no_answer_and_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    remote = RemoteSettings(("C",), "gate", WRONG)
    with caplog.at_level(logging.DEBUG), answering(500, WRONG.encode(), location=WRONG) as (odd, asked):
        client = client_of(gateway_of(site_at("C", odd, unused_port()), remote=remote))
        texts = [client.get(path).text for path in ("/v3/flows", "/", "/replications", "/metrics", "/v3/flows/A/C")]
    assert asked[0]["authorization"].startswith("Basic ")
    assert not any(WRONG in text for text in [*texts, caplog.text, repr(remote)])


def test_the_same_is_asked_once_however_many_wait_for_it() -> None:
    with trickling(None) as (port, came):
        gateway = gateway_of(site_at("C", port), seconds=1.0)
        threads = [threading.Thread(target=lambda: gateway.begin(SPAN).answers()) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10.0)
        assert len(came) == 1


def test_one_that_hangs_takes_up_few_threads() -> None:
    with trickling(None) as (port, came):
        gateway = gateway_of(site_at("C", port), seconds=1.0)
        rounds = [gateway.begin(Span(NOW - minutes * 60_000, NOW + 1)) for minutes in range(1, 10)]
        kinds = [answer.kind for one in rounds for answer in one.answers()]
        assert kinds == [SiteFailure.SLOW] * 4 + [SiteFailure.BUSY] * 5
        assert len(came) == 4


# One question


def ask(port: int, remote: RemoteSettings = GATE, protocol: str = "http", seconds: float = 1.0) -> bytes:
    return Client(remote).get(Address(protocol, HOST, port), "/v3/flows?own=true", seconds)


def failure(port: int, **arguments: Any) -> tuple[SiteFailure, str]:
    with pytest.raises(CallFailed) as caught:
        ask(port, **arguments)
    return caught.value.kind, caught.value.why


@pytest.mark.parametrize(
    "head",
    [b"", b"HTTP/1.1 ", b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"],
)
def test_one_that_trickles_is_left_in_time(head: bytes) -> None:
    with trickling(0.1, head) as (port, _):
        began = time.monotonic()
        assert failure(port) == (SiteFailure.SLOW, "does not answer within 1 s")
        assert failure(port, protocol="https")[0] in (SiteFailure.SLOW, SiteFailure.NO_ANSWER)
        assert time.monotonic() - began < 20.0  # it would trickle for ever


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, SiteFailure.NOT_UNDERSTOOD),
        (404, SiteFailure.NOT_UNDERSTOOD),
        (500, SiteFailure.NOT_UNDERSTOOD),
        (401, SiteFailure.LOGIN_REFUSED),
        (403, SiteFailure.LOGIN_REFUSED),
        (429, SiteFailure.LOGIN_REFUSED),
    ],
)
def test_answers_that_are_none(status: int, kind: SiteFailure) -> None:
    with answering(200, b"secret") as (elsewhere, followed):
        url = f"http://{HOST}:{elsewhere}/"
        with answering(status, b"<script>alert(1)</script>", location=url) as (port, _):
            found, why = failure(port)
    assert (found, str(status) in why, "script" in why, followed) == (kind, True, False, [])


def test_one_that_speaks_something_else_is_no_service() -> None:
    with trickling(0.05, b"SSH-2.0-OpenSSH\r\n") as (port, _):
        assert failure(port)[0] is SiteFailure.NOT_UNDERSTOOD
    with answering(200, b"x" * (16 * 1024 * 1024 + 1)) as (port, _):
        assert failure(port, seconds=10.0) == (SiteFailure.NOT_UNDERSTOOD, "answers with more than 16 MB")


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"{}", b'{"at":"x","range":{"start":"x","end":"x"},"flows":[{}]}', b"\xff\xfe", b"[" * 100_000],
)
def test_an_answer_that_is_not_understood_is_told_and_harms_nobody(body: bytes) -> None:
    with answering(200, body) as (port, _):
        document = ok(client_of(gateway_of(site_at("C", port))), "/v3/flows")
    assert document["sites"][0]["kind"] == "not-understood"
    assert [one["status"] for one in document["flows"]] == ["ACTIVE"]


def test_a_token_instead_of_a_password() -> None:
    with answering(200, b"{}") as (port, asked):
        ask(port, RemoteSettings((), token="t0ken"))
        ask(port, RemoteSettings(()))
    assert [one.get("authorization") for one in asked] == ["Bearer t0ken", None]


def test_a_password_goes_to_no_other_machine_unencrypted() -> None:
    with pytest.raises(CallFailed) as caught:
        Client(GATE).get(Address("http", "no.such.host.invalid", 80), "/", 1.0)
    assert caught.value.kind is SiteFailure.NOT_ENCRYPTED
    with pytest.raises(CallFailed) as caught:
        Client(RemoteSettings(())).get(Address("http", "no.such.host.invalid", 80), "/", 5.0)
    assert caught.value.kind is SiteFailure.NO_ANSWER


@pytest.fixture(scope="module")
def authority() -> Identity:
    return identity("authority", is_ca=True)


def _files(folder: Path, one: Identity) -> tuple[Path, Path]:
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    certificate.write_text(one.certificate_pem)
    key.write_text(one.key_pem)
    return certificate, key


def test_tls_by_the_authority_that_is_named(tmp_path: Path, authority: Identity) -> None:
    trusted = tmp_path / "ca.pem"
    trusted.write_text(authority.certificate_pem)
    remote = RemoteSettings(("C",), "gate", "gate", None, str(trusted))
    with served(site_app(AC), 0, *_files(tmp_path, identity("service", authority))) as port:
        site = site_at("C", port, protocol="https")
        assert ok(client_of(gateway_of(site, remote=remote)), "/v3/flows")["flows"][1]["status"] == "ACTIVE"
        kind, why = failure(port, protocol="https", seconds=5.0)
        assert (kind, "not trusted" in why) == (SiteFailure.CERTIFICATE, True)
        assert failure(port, seconds=5.0)[0] in (SiteFailure.NO_ANSWER, SiteFailure.NOT_UNDERSTOOD)
    with answering(200) as (plain, _):
        assert failure(plain, protocol="https", seconds=5.0)[0] is SiteFailure.NO_ANSWER


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_a_file_of_authorities_that_cannot_be_used_ends_the_start(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "ca.pem"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        Client(RemoteSettings(("C",), ca_file=str(path)))
    (problem,) = caught.value.problems
    assert "service.remote.ca.file" in str(problem)


def test_no_thread_is_left_behind() -> None:
    with trickling(0.1) as (port, _):
        gateway_of(site_at("C", port), seconds=1.0).begin(SPAN).answers()
    await_until(
        lambda: not [one for one in threading.enumerate() if one.name.startswith("srm asks")], 5.0, "threads go on"
    )


def test_authorities_are_read_again_when_their_file_changes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    old, new = identity("old authority", is_ca=True), identity("new authority", is_ca=True)
    trusted = tmp_path / "ca.pem"
    trusted.write_text(old.certificate_pem)
    client = Client(RemoteSettings(("C",), ca_file=str(trusted)))
    watch = table_watch(str(trusted), trusting, client)
    certificate, key = _files(tmp_path, identity("service", new))
    with served(site_app(AC), certificate=certificate, key=key) as port:

        def refusal() -> SiteFailure:
            with pytest.raises(CallFailed) as refused:
                client.get(Address("https", HOST, port), "/healthz", PATIENT)
            return refused.value.kind

        assert refusal() is SiteFailure.CERTIFICATE
        trusted.write_text("no certificate")
        watch.look()
        assert not client.is_current
        assert str(trusted) in caplog.text
        assert refusal() is SiteFailure.CERTIFICATE, "whom it trusted before"
        trusted.write_text(old.certificate_pem + new.certificate_pem)
        watch.look()
        assert client.is_current
        assert client.get(Address("https", HOST, port), "/healthz", PATIENT)
