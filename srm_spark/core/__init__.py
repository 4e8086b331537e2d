"""The domain: values and pure functions. No client, no Spark, no file, no socket."""
