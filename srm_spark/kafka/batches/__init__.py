"""Copies record batches as the producer packed them: the hot path without a client library between the bytes."""
