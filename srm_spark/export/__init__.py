"""What a driver shows to Prometheus: our names, those of MirrorMaker 2, and the server. Imports its client alone."""
