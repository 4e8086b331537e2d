"""Logins by an OpenID provider: people with a browser, programs with access tokens. The only room that knows JWTs."""
