"""Configurations to deploy, and what is in the files that come of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from srm_spark.config.load import Loaded, load
from srm_spark.deploy.report import Deployment

PLAIN = r"""clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
A->B.topics = orders, payments\\..*
dialect = mm2
"""
SECRETS = ("clear-1", "clear-2", "clear-3")
"""What no written file may hold."""
LOGINS = (
    PLAIN
    + """
A.security.protocol = SASL_SSL
A.sasl.mechanism = SCRAM-SHA-512
A.sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="clear-1";
A.ssl.truststore.location = /nowhere/a/trust.p12
A.ssl.truststore.password = ${env:TRUST_OF_A}
B.security.protocol = SSL
B.ssl.truststore.location = /nowhere/b/trust.p12
B.ssl.truststore.password = clear-2
B.ssl.keystore.location = /nowhere/b/keys.p12
B.ssl.keystore.password = ${file:/nowhere/b/secret.properties:keys}
B.ssl.key.password = ${file:/nowhere/b/secret.properties:keys}
service.alerts.webhook = https://hooks.example/clear-3
"""
)


def loaded_from(folder: Path, text: str = LOGINS, name: str = "srm.properties") -> Loaded:
    """As a file of that text is read."""
    path = folder / name
    path.write_text(text)
    return load([path])


def documents(deployment: Deployment) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each resource in the YAML files, with its path."""
    for path, text in deployment.files.items():
        if path.endswith(".yaml"):
            for document in yaml.safe_load_all(text):
                yield path, document


def without_secrets(files: Mapping[str, str]) -> bool:
    """Whether nothing of SECRETS is in any file."""
    return not any(re.search("|".join(SECRETS), text) for text in files.values())
