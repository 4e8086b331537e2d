"""Why somebody is not let in by a provider's word."""

from __future__ import annotations


class TokenRefused(Exception):
    """A token, or a login, is not right; the text says why, for the record, and holds nothing of it."""


class ProviderSilent(Exception):
    """The provider does not answer, or not what it should."""
