"""History of the service: written by a Spark Structured Streaming job, read by deltalake; only this package knows it.

Whoever reads needs no Spark, so nothing is imported here.
"""
