"""Records that cannot be copied: partitions that wait for them, quarantine, replay."""
