"""REST and pages of `srm-service`: they render what `look` has found, and decide nothing.

The only place that imports fastapi, uvicorn, jinja2 and argon2, which the extra `srm-spark[api]` brings.
"""
