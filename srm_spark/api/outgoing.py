"""What the service itself asks of others by HTTP goes to the address of the configuration, or nowhere."""

from __future__ import annotations

from urllib.request import HTTPRedirectHandler, build_opener


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Never."""


opener = build_opener(_NoRedirects())
"""Follows no redirect."""
