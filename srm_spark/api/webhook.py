"""Tells a webhook of alerts, in a thread of its own: no request and no flow waits for it."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request

from srm_spark.api.outgoing import opener
from srm_spark.core.alerting import Alerting, AlertSettings, document_of
from srm_spark.core.model import Flow
from srm_spark.look.alerting import Recovery, facts_of
from srm_spark.look.board import Board

log = logging.getLogger(__name__)
_LOOK_SECONDS = 5.0
_ANSWER_SECONDS = 10.0
_LONGEST_PAUSE = 300.0


class Webhook:
    """Watches a board from `start` until `stop`."""

    def __init__(
        self,
        board: Board,
        settings: AlertSettings,
        service: str,
        recovery: Callable[[Flow], Recovery | None] = lambda _: None,
        *,
        look_seconds: float = _LOOK_SECONDS,
    ) -> None:
        """`service` is the address that people may open, `recovery` what is known of a flow's last failover."""
        self._board, self._settings, self._service, self._recovery = board, settings, service, recovery
        self._look_seconds = look_seconds
        self._alerting = Alerting(settings)
        self._where = _without_secrets(settings.webhook)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="alerts", daemon=True)
        self._failures = 0

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Tell nothing more."""
        self._over.set()
        self._thread.join(_ANSWER_SECONDS)

    def _run(self) -> None:
        while not self._over.wait(self._pause):
            try:
                self.look(time.time)
            except Exception:  # whoever waits for alerts must not wait for nothing
                log.exception("alerts cannot be judged; tried again")

    @property
    def _pause(self) -> float:
        return max(self._look_seconds, min(self._look_seconds * 2.0 ** min(self._failures, 9), _LONGEST_PAUSE))

    def look(self, clock: Callable[[], float]) -> None:
        """Tell what is due."""
        facts, unknown = facts_of(self._board, self._settings, self._recovery)
        now = clock()
        notices = self._alerting.judge(facts, unknown, now)
        if not notices:
            return
        why_not = self._post(json.dumps(document_of(notices, self._service)).encode())
        if why_not is None:
            self._failures = 0
            self._alerting.told(notices, now)
            return
        if not self._failures:
            log.error("%d alerts cannot be told to %s: %s; tried again", len(notices), self._where, why_not)
        self._failures += 1

    def _post(self, body: bytes) -> str | None:
        """Why nobody was told, if so."""
        headers = {"Content-Type": "application/json"}
        request = Request(self._settings.webhook, body, headers, method="POST")  # noqa: S310 - none but http is configured
        try:
            with opener.open(request, timeout=_ANSWER_SECONDS) as answer:
                answer.read(1)
        except HTTPError as error:
            with error:
                return f"it answers {error.code}"
        except (URLError, HTTPException, OSError, ValueError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            return str(reason) if isinstance(reason, OSError) else type(reason).__name__
        return None


def _without_secrets(url: str) -> str:
    """Scheme and host: paths and queries of webhooks are often their passwords."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}"
