"""The only importer of Kafka's clients."""
