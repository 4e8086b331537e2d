"""Remote topics, and the flow's own topics on the target: progress, offset map, syncs, heartbeats."""
