"""What a file says of services of other sites, and of where they find this one."""

from __future__ import annotations

import pytest

from srm_spark.config.secrets import MASK, mask
from srm_spark.config.settings import AdvertisedSettings, RemoteSettings
from tests.unit.config.conftest import Loader, problems

THREE = "clusters = A, B, C\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nC.bootstrap.servers = c:1\n"
FLOWS = "A->B.enabled = true\nA->C.enabled = true\n"


def test_without_a_word_nobody_is_asked(loaded: Loader) -> None:
    found = loaded("").settings.service
    assert (found.remote, found.advertised, found.targets) == (None, AdvertisedSettings(), ())


def test_other_sites_and_how_to_log_in_there(loaded: Loader) -> None:
    text = "service.remote.targets = C\nservice.remote.user = gate\nservice.remote.password = geheim\n"
    found = loaded(text + "service.remote.ca.file = ca.pem", base=THREE + FLOWS)
    assert problems(found) == []
    assert found.settings.service.remote == RemoteSettings(("C",), "gate", "geheim", None, "ca.pem")
    assert found.settings.service.targets == ("A", "B")
    assert "geheim" not in repr(found.settings)
    token = loaded(
        "service.remote.targets = C\nservice.remote.token = t0ken", base=THREE + FLOWS
    ).settings.service.remote
    assert token == RemoteSettings(("C",), None, None, "t0ken", None)
    assert "t0ken" not in repr(token)


def test_own_targets_stay_as_they_are_written(loaded: Loader) -> None:
    text = "streams.replication.manager.service.target.cluster = B\ndialect = mm2\nservice.remote.targets = C"
    assert loaded(text, base=THREE + FLOWS).settings.service.targets == ("B",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("service.remote.targets = X", "unknown alias X"),
        ("service.remote.targets = A, B, C", "leaves no cluster"),
        (
            "service.remote.targets = B\nstreams.replication.manager.service.target.cluster = B\ndialect = mm2",
            "a target of this service itself",
        ),
        ("service.remote.user = gate", "without service.remote.targets"),
        ("service.remote.ca.file = ca.pem", "without service.remote.targets"),
        ("service.remote.targets = C\nservice.remote.user = gate", "service.remote.password is not"),
        ("service.remote.targets = C\nservice.remote.password = geheim", "service.remote.user is not"),
        ("service.remote.targets = C\nservice.remote.token =", "is empty"),
        ("service.remote.targets = C\nservice.remote.token = a\\u000ab", "no header"),
        (
            "service.remote.targets = C\nservice.remote.user = a:b\nservice.remote.password = geheim",
            "it has a colon",
        ),
        (
            "service.remote.targets = C\nservice.remote.user = g\nservice.remote.password = geheim\n"
            "service.remote.token = geheim",
            "by one of them",
        ),
        ("service.advertised.host = http://srm", "no name or address of a host"),
        ("service.advertised.port = 0", "1 to 65535"),
        ("service.advertised.protocol = ftp", "http, https"),
        ("service.advertised.root.path = srm", "begins with a slash"),
    ],
)
def test_what_cannot_be_meant_is_told(loaded: Loader, text: str, words: str) -> None:
    (problem,) = problems(loaded(text, base=THREE + FLOWS))
    assert words in problem
    assert "geheim" not in problem


def test_where_a_proxy_stands(loaded: Loader) -> None:
    text = "service.advertised.protocol = https\nservice.advertised.host = [fd00::1]\nservice.advertised.port = 443\n"
    key = "streams.replication.manager.service.remote.advertisement.topic.replication.factor"
    found = loaded(f"{text}service.advertised.root.path = /srm/\n{key} = 2\ndialect = mm2").settings.service.advertised
    assert found == AdvertisedSettings("https", "fd00::1", 443, "/srm", 2)


@pytest.mark.parametrize("key", ["service.remote.password", "service.remote.token"])
def test_secrets_are_shown_by_nothing(key: str) -> None:
    assert mask(key, "geheim") == MASK
