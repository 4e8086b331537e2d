"""One replication A->B: its root runs it, the rooms below do one thing each."""
