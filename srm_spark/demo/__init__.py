"""`make demo`: two embedded clusters, a flow between them, and its proof."""
