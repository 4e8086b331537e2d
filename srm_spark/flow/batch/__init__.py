"""One micro-batch, from ranges of offsets to recorded progress; and the same in real time."""
