"""Our flow against MirrorMaker 2, side by side on the same brokers: records per second, CPU per record, as ratios."""
