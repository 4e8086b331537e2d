"""Consumer groups: where they stand, where that is on the target, and setting them there."""
