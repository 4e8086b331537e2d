"""Gateways of tests: A→B is their own, other flows are of sites that they ask."""

from __future__ import annotations

from collections.abc import Sequence

from srm_spark.api.gateway import Gateway
from srm_spark.api.site_call import Client
from srm_spark.api.told import flows_told
from srm_spark.config.settings import RemoteSettings
from srm_spark.core.model import Flow
from srm_spark.look.sites import Site
from tests.unit.api.boards import AB, Clock, Filled

AC, AD, AE, AF = Flow("A", "C"), Flow("A", "D"), Flow("A", "E"), Flow("A", "F")
GATE = RemoteSettings(("C", "D", "E", "F"), "gate", "gate")
PATIENT = 30.0
"""Seconds for sites that are to answer, however busy this machine is."""


def filled(*flows: Flow) -> Filled:
    made = Filled(flows=flows)
    for flow in flows:
        made.reports(flow, minutes=5)
    made.live()
    return made


def gateway_of(
    *sites: Site,
    remote: RemoteSettings = GATE,
    clock: Clock | None = None,
    expected: Sequence[Flow] = (),
    seconds: float = PATIENT,
) -> Gateway:
    clock = clock or Clock()
    return Gateway(
        sites,
        Client(remote).get,
        flows_told,
        own=[AB],
        expected=expected,
        clock=lambda: clock.now,
        monotonic=lambda: clock.monotonic,
        seconds=seconds,
    )
