"""Shows the flows of other sites beside our own: their services are asked at the moment somebody looks (SRM's Remote
Querying).

All are asked at the same time, each for two seconds at most, and each question once however many wait for it. A site
that does not answer is unknown since it answered last. Only for what they tell of themselves are they asked, so that
nobody asks in circles.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Protocol

from srm_spark.api.site_call import CallFailed, SiteFailure
from srm_spark.api.wording import duration
from srm_spark.core.advertised import Address, HeardAdvertisement
from srm_spark.core.flow_series import FlowNow, Health
from srm_spark.core.model import Flow
from srm_spark.core.series import Span
from srm_spark.core.wording import some
from srm_spark.look.board import Board
from srm_spark.look.figures import FlowFigures, flow_figures, unknown_figures
from srm_spark.look.sites import Site

DEADLINE_SECONDS = 2.0
"""A site that has not answered by then is unknown."""
_FRESH_SECONDS = 1.0
"""An answer is given once more to who asks the same so soon."""
_AT_ONCE = 4
"""Questions to one service; one that hangs is not to take up all threads."""
_SERVICES = 4
"""Of a site that are asked: those that spoke last."""
_REFUSED_SECONDS = 90.0
"""Who asks on with a wrong password is locked out there, right or wrong, after five times in five minutes."""
_MINUTE_MS = 60_000
_MOMENT_MS = 5_000


class Ask(Protocol):
    """How a question is asked: `Client.get`."""

    def __call__(self, address: Address, path: str, seconds: float) -> bytes:
        """The answer. Raises CallFailed."""


Read = Callable[[bytes, Span], Sequence[FlowFigures]]
"""What an answer tells. Raises ValueError where it is none."""


@dataclass(frozen=True)
class ServiceAnswer:
    """One service of another site at this moment."""

    url: str
    advertised_at: int | None
    """When it said last that it is there, in milliseconds since the epoch."""
    kind: SiteFailure | None = None
    """None: it answered."""
    why: str | None = None
    """One sentence; also where it answers and is not advertised any more."""


@dataclass(frozen=True)
class SiteFlow:
    """A flow of another site."""

    site: str
    url: str | None
    """Of the service that tells of it; None where none has ever been found."""
    found: FlowFigures


@dataclass(frozen=True)
class SiteAnswer:
    """What is known of another site."""

    site: str
    """Alias of its cluster."""
    services: tuple[ServiceAnswer, ...]
    flows: tuple[SiteFlow, ...]
    answered_at: int | None
    """When a service of it answered last, in milliseconds since the epoch; None: never since we run."""
    kind: SiteFailure | None = None
    """None: it answered."""
    why: str | None = None
    """One sentence."""


@dataclass(frozen=True)
class _Means:
    """What questions are asked by."""

    ask: Ask
    read: Read
    clock: Callable[[], float]
    monotonic: Callable[[], float]
    seconds: float

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return int(self.clock() * 1000)


@dataclass
class _Question:
    asked_at: float
    done: threading.Event = field(default_factory=threading.Event)
    told: Sequence[FlowFigures] = ()
    failure: CallFailed | None = None
    answered_at: int = 0


class _Service:
    """One address. Safe to use from several threads."""

    def __init__(self, address: Address, means: _Means) -> None:
        self._address, self._means = address, means
        self._lock = threading.Lock()
        self._questions: dict[str, _Question] = {}
        self._refused: tuple[float, CallFailed] | None = None

    def question(self, path: str, span: Span) -> _Question:
        """One that is asked just now, or was a moment ago."""
        now = self._means.monotonic()
        with self._lock:
            self._questions = {key: one for key, one in self._questions.items() if self._counts(one, now)}
            if path in self._questions:
                return self._questions[path]
            question = _Question(now)
            if (failure := self._why_not(now)) is not None:
                question.failure = failure
                question.done.set()
                return question
            self._questions[path] = question
        threading.Thread(
            target=self._put, args=(question, path, span), name=f"srm asks {self._address.host}", daemon=True
        ).start()
        return question

    def _counts(self, question: _Question, now: float) -> bool:
        return not question.done.is_set() or now - question.asked_at < _FRESH_SECONDS

    def _why_not(self, now: float) -> CallFailed | None:
        if self._refused is not None and now < self._refused[0]:
            return self._refused[1]
        if sum(not one.done.is_set() for one in self._questions.values()) >= _AT_ONCE:
            return CallFailed(SiteFailure.BUSY, f"has not answered {_AT_ONCE} other questions yet")
        return None

    def _put(self, question: _Question, path: str, span: Span) -> None:
        try:
            question.told = self._means.read(self._means.ask(self._address, path, self._means.seconds), span)
            question.answered_at = self._means.now()
        except CallFailed as error:
            question.failure = error
            if error.kind is SiteFailure.LOGIN_REFUSED:
                self._refused = self._means.monotonic() + _REFUSED_SECONDS, error
        except Exception as error:  # whatever it sent
            text = f"does not answer as a service of this version does: {type(error).__name__}"
            question.failure = CallFailed(SiteFailure.NOT_UNDERSTOOD, text)
        question.done.set()


@dataclass
class _Memory:
    """What a site has told."""

    answered_at: int | None = None
    told_at: dict[Flow, int] = field(default_factory=dict)
    services: dict[str, _Service] = field(default_factory=dict)


_Asked = tuple[HeardAdvertisement, _Question]


class Round:
    """One look at all sites, which are being asked."""

    def __init__(
        self, gateway: Gateway, span: Span, asked: Sequence[tuple[Site, Sequence[_Asked]]], seconds: float
    ) -> None:
        self._gateway, self._span, self._asked = gateway, span, asked
        self._deadline = time.monotonic() + seconds

    def answers(self) -> list[SiteAnswer]:
        """What came of it, in the order of the configuration; waits until the time is over."""
        for _, questions in self._asked:
            for _, question in questions:
                question.done.wait(max(0.0, self._deadline - time.monotonic()))
        found = [self._gateway.judge(site, questions, self._span) for site, questions in self._asked]
        sees = self._gateway.sees
        if sees is None:
            return found
        seen = [replace(one, flows=tuple(row for row in one.flows if sees(row.found.now.flow))) for one in found]
        return [one for one in seen if one.flows]


class Gateway:
    """All other sites. Safe to use from several threads."""

    def __init__(
        self,
        sites: Sequence[Site],
        ask: Ask,
        read: Read,
        *,
        own: Sequence[Flow] = (),
        expected: Sequence[Flow] = (),
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        seconds: float = DEADLINE_SECONDS,
    ) -> None:
        """`own` are told of by ourselves; `expected` are those of the configuration, which are unknown until a site has
        answered. Both clocks in seconds; after `seconds` a site that has not answered is unknown."""
        self.sites = tuple(sites)
        self._means = _Means(ask, read, clock, monotonic, seconds)
        self._own, self._expected = frozenset(own), tuple(expected)
        self.sees: Callable[[Flow], bool] | None = None
        """What who asks may know of; None: everything."""
        self._lock = threading.Lock()
        self._memories = {site.alias: _Memory() for site in sites}

    def only(self, sees: Callable[[Flow], bool]) -> Gateway:
        """The same as far as these flows go: for who may see no others."""
        seen = copy(self)
        seen.sees = sees
        return seen

    def begin(self, span: Span) -> Round:
        """Ask all of them for the figures of a range."""
        now = self._means.now()
        path = _path(span, now)
        return Round(
            self, span, [(site, self._begin(site, path, span, now)) for site in self.sites], self._means.seconds
        )

    def _begin(self, site: Site, path: str, span: Span, now: int) -> list[_Asked]:
        heard = [one for one in site.heard() if not one.is_forgotten(now)][:_SERVICES]
        with self._lock:
            memory = self._memories[site.alias]
            services = {one.said.address.url: memory.services.get(one.said.address.url) for one in heard}
            memory.services = {
                one.said.address.url: services[one.said.address.url] or _Service(one.said.address, self._means)
                for one in heard
            }
            return [(one, memory.services[one.said.address.url].question(path, span)) for one in heard]

    def judge(self, site: Site, asked: Sequence[_Asked], span: Span) -> SiteAnswer:
        """What the answers of a site come to."""
        now = self._means.now()
        services = tuple(self._service(heard, question, now) for heard, question in asked)
        told: dict[Flow, SiteFlow] = {}
        with self._lock:
            memory = self._memories[site.alias]
            for heard, question in asked:
                if question.done.is_set() and question.failure is None:
                    memory.answered_at = max(question.answered_at, memory.answered_at or 0)
                    self._take(told, site.alias, heard, question)
            memory.told_at |= dict.fromkeys(told, now)
            if services and all(one.kind is None for one in services):
                memory.told_at = dict.fromkeys(told, now)
            known: dict[Flow, int | None] = {**memory.told_at}
            answered_at = memory.answered_at
        kind, why = self._why(site, services, answered_at, now)
        if kind is not None:
            known = {**dict.fromkeys(one for one in self._expected if one.target == site.alias), **known}
        url = services[0].url if services else None
        missing = why or _joined(one for one in services if one.kind is not None)
        for flow in known.keys() - told.keys() - self._own:
            told[flow] = SiteFlow(site.alias, url, _unknown(flow, known[flow], f"site {site.alias}: {missing}", span))
        return SiteAnswer(site.alias, services, tuple(told[flow] for flow in sorted(told)), answered_at, kind, why)

    def _take(self, told: dict[Flow, SiteFlow], alias: str, heard: HeardAdvertisement, question: _Question) -> None:
        for found in question.told:
            flow = found.now.flow
            if flow.target != alias or flow in self._own:
                continue
            if flow not in told or (found.now.is_known and not told[flow].found.now.is_known):
                told[flow] = SiteFlow(alias, heard.said.address.url, found)

    def _service(self, heard: HeardAdvertisement, question: _Question, now: int) -> ServiceAnswer:
        url = heard.said.address.url
        if not question.done.is_set():
            question = _Question(
                0.0, failure=CallFailed(SiteFailure.SLOW, f"does not answer within {self._means.seconds:g} s")
            )
        old = f"has not renewed its advertisement for {duration(heard.age(now))}" if heard.is_old(now) else None
        if question.failure is None:
            return ServiceAnswer(url, heard.at, None, None if old is None else f"{url} answers, but {old}")
        why = f"{url} {question.failure.why}"
        return ServiceAnswer(url, heard.at, question.failure.kind, why if old is None else f"{why}, and {old}")

    def _why(
        self, site: Site, services: Sequence[ServiceAnswer], answered_at: int | None, now: int
    ) -> tuple[SiteFailure | None, str | None]:
        if any(one.kind is None for one in services):
            return None, None
        ago = "" if answered_at is None else f"; it answered last {duration((now - answered_at) / 1000)} ago"
        if services:
            return services[0].kind, _joined(services) + ago
        if heard := site.heard():
            age = duration(heard[0].age(now))
            return SiteFailure.NO_ADVERTISEMENT, f"its newest advertisement is {age} old: nobody is asked there{ago}"
        if site.why_not is not None:
            return SiteFailure.NO_CLUSTER, f"where its services are cannot be read: {site.why_not}{ago}"
        if names := site.other_names():
            why = (
                f"services are there, but they call that cluster {some(names)}: aliases have to be the same everywhere"
            )
            return SiteFailure.NO_ADVERTISEMENT, f"{why}{ago}"
        return SiteFailure.NO_ADVERTISEMENT, f"no service says on that cluster where it is{ago}"

    def where(self, flow: Flow) -> str | None:
        """The sentence for who asks here for a flow of another site, or acts on it; None where it is none."""
        if self.sees is not None and not self.sees(flow):
            return None
        with self._lock:
            of = [alias for alias, memory in self._memories.items() if flow in memory.told_at]
        for site in self.sites:
            if flow not in self._own and (site.alias in of or site.alias == flow.target):
                urls = [one.said.address.url for one in site.heard() if not one.is_forgotten(self._means.now())]
                place = f"at {urls[0]}" if urls else "whose address is not known here now"
                return f"{flow} is told of and steered by the service of site {site.alias}, {place}: ask it there"
        return None


@dataclass(frozen=True)
class Seen:
    """All flows, our own first."""

    own: tuple[FlowFigures, ...]
    sites: tuple[SiteAnswer, ...] = ()

    @property
    def elsewhere(self) -> dict[Flow, SiteFlow]:
        """Those of other sites."""
        return {one.found.now.flow: one for answer in self.sites for one in answer.flows}

    @property
    def all(self) -> list[FlowFigures]:
        """Of all sites; each flow once."""
        return [*self.own, *(one.found for one in self.elsewhere.values())]

    @property
    def why_not(self) -> list[str]:
        """What is not known of other sites, one sentence each."""
        return [f"site {one.site}: {one.why}" for one in self.sites if one.why is not None]


def look(board: Board, gateway: Gateway | None, span: Span) -> Seen:
    """Our own flows and those of other sites, over a range."""
    round_ = None if gateway is None else gateway.begin(span)
    own = tuple(flow_figures(board, flow, span) for flow in board.flows)
    return Seen(own, () if round_ is None else tuple(round_.answers()))


def _path(span: Span, now: int) -> str:
    """In words that mean the same under another clock, where that is possible."""
    minutes, rest = divmod(span.end - 1 - span.start, _MINUTE_MS)
    is_until_now = abs(now + 1 - span.end) < _MOMENT_MS and rest == 0 and minutes > 0
    asked = f"minutes={minutes}" if is_until_now else f"from={span.start}&to={span.end}"
    return f"/v3/flows?own=true&{asked}"


def _joined(services: Iterable[ServiceAnswer]) -> str:
    return "; ".join(one.why for one in services if one.why is not None)


def _unknown(flow: Flow, since: int | None, why: str, span: Span) -> FlowFigures:
    return FlowFigures(FlowNow(flow, Health.INACTIVE, (why,), since), unknown_figures(span))
