"""A ZooKeeper for a broker of a release that has no other place for its metadata."""

from __future__ import annotations

from pathlib import Path

import javaproperties

from srm_spark.testing.process import JavaProcess


def zookeeper(directory: Path, port: int, jar_set: str) -> JavaProcess:
    """Not started yet; its data, settings and log lie in a folder, made here, and stay there from start to start."""
    directory.mkdir(exist_ok=True)
    settings = {
        "dataDir": str(directory / "data"),
        "clientPort": str(port),
        "clientPortAddress": "127.0.0.1",
        "admin.enableServer": "false",
    }
    config = directory / "zookeeper.properties"
    config.write_text(javaproperties.dumps(settings, timestamp=False))
    return JavaProcess(
        "org.apache.zookeeper.server.ZooKeeperServerMain",
        str(config),
        log_path=directory / "zookeeper.log",
        heap="128m",
        jar_set=jar_set,
        log_levels={"org.apache.zookeeper.server.NIOServerCnxnFactory": "info"},
    )


STARTED = "binding to port"
"""What its log has once it listens, or is about to."""
