"""Shows metrics by HTTP, in threads of its own: a scrape waits for no cluster, and a flow for no scrape."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry, start_http_server

from srm_spark.config.settings import ExportSettings
from srm_spark.errors import SetupError
from srm_spark.export.collecting import FlowCollector
from srm_spark.export.figures import FlowFigures

log = logging.getLogger(__name__)


class MetricsServer:
    """At one address, from now until `close`."""

    def __init__(self, settings: ExportSettings, figures: Callable[[], Sequence[FlowFigures]]) -> None:
        """Raises SetupError where nothing can listen at the address."""
        registry = CollectorRegistry()
        registry.register(FlowCollector(figures))
        try:
            self._server, self._thread = start_http_server(settings.port, settings.host, registry)
        except OSError as error:
            found = f"driver.metrics.listener: cannot listen at {settings.host}:{settings.port}: {error.strerror}"
            raise SetupError(found, "write an address of this machine and a port that nobody else has") from error
        self.port = int(self._server.server_port)
        log.info("metrics are shown at http://%s:%s/metrics", settings.host, self.port)

    def close(self) -> None:
        """Show nothing more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
