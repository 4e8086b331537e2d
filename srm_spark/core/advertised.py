"""Where services can be asked, as they say it in the advertisements topic of their targets. No I/O.

```
key    ["service","B","https://srm.b.example:6671"]
value  {"v":1,"every":30.0,"protocol":"https","host":"srm.b.example","port":6671,"path":""}
```

A tombstone takes an advertisement back. Whoever may write to the topic may write anything: what is not the address of a
service is no advertisement.
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
from dataclasses import dataclass

from srm_spark.core.compact_json import compact_json

TOPIC = "srm-service.internal"
"""On every cluster whose incoming flows a service tells of."""
PROTOCOLS = ("http", "https")
_VERSION = 1
_SERVICE = "service"
_MISSED = 3
"""An advertisement that was not renewed so often in a row is old."""
_FORGOTTEN_SECONDS = 86_400.0
"""Nobody is asked at an address that is older: it may be somebody else's by now."""
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*")


@dataclass(frozen=True)
class Address:
    """Of a service."""

    protocol: str
    host: str
    port: int
    path: str = ""
    """In front of the paths of its API; empty, or begins with a slash and does not end with one."""

    @property
    def url(self) -> str:
        """As it is written."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.protocol}://{host}:{self.port}{self.path}"

    @property
    def is_safe_for_secrets(self) -> bool:
        """Whether nobody between us and it reads what it is sent."""
        if self.protocol == "https" or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def is_host(text: str) -> bool:
    """Whether it is a name, or an address without brackets."""
    if ":" not in text:
        return _HOST.fullmatch(text) is not None
    try:
        return ipaddress.ip_address(text).version == 6 and "%" not in text
    except ValueError:
        return False


def is_path(text: str) -> bool:
    """Whether it can stand in front of the paths of an API."""
    return _PATH.fullmatch(text) is not None


@dataclass(frozen=True)
class Advertisement:
    """What a service says of itself."""

    target: str
    """The cluster whose incoming flows it tells of, by its alias there."""
    address: Address
    every: float
    """Seconds until it says so again."""


@dataclass(frozen=True)
class HeardAdvertisement:
    """One that was read."""

    said: Advertisement
    at: int | None
    """When it was written, in milliseconds since the epoch, by the clock that the topic goes by."""

    def age(self, now: int) -> float | None:
        """Seconds; None where its time is not known. `now` in milliseconds since the epoch."""
        return None if self.at is None else max(0.0, (now - self.at) / 1000)

    def is_old(self, now: int) -> bool:
        """Whether it should have been renewed since."""
        age = self.age(now)
        return age is None or age > _MISSED * self.said.every

    def is_forgotten(self, now: int) -> bool:
        """Whether it is so old that nobody is to be asked there."""
        age = self.age(now)
        return age is None or age > _FORGOTTEN_SECONDS


def key_of(said: Advertisement) -> bytes:
    """Under which it lies: that of a service which starts again at its address is the same."""
    return compact_json([_SERVICE, said.target, said.address.url])


def encode(said: Advertisement) -> tuple[bytes, bytes]:
    """Key and value."""
    address = said.address
    place = {"protocol": address.protocol, "host": address.host, "port": address.port, "path": address.path}
    return key_of(said), compact_json({"v": _VERSION, "every": said.every, **place})


def decode(key: bytes | None, value: bytes | None) -> Advertisement | None:
    """The same back; None where it is none, or of a version that this one does not know."""
    try:
        kind, target, _ = json.loads(key or b"")
        document = json.loads(value or b"")
        if kind != _SERVICE or document["v"] != _VERSION:
            return None
        address = Address(document["protocol"], document["host"], document["port"], document["path"])
        said = Advertisement(target, address, float(document["every"]))
        return said if _is_sound(said) and key_of(said) == key else None
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _is_sound(said: Advertisement) -> bool:
    address = said.address
    return (
        isinstance(said.target, str)
        and address.protocol in PROTOCOLS
        and is_host(address.host)
        and type(address.port) is int
        and 1 <= address.port <= 65535
        and is_path(address.path)
        and math.isfinite(said.every)
        and 0 < said.every <= 3600
    )
