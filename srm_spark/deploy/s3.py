"""What jobs of AWS have in common: everything they take along lies below one prefix of S3."""

from __future__ import annotations

import re
from dataclasses import dataclass

from srm_spark.deploy.spark import ENVIRONMENT, Spark
from srm_spark.errors import Problem

_PREFIX = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9!_.*'()=-]+)*/?")


@dataclass(frozen=True)
class Prefix:
    """Addresses below a prefix."""

    prefix: str

    def at(self, name: str) -> str:
        """The address of a file."""
        return f"{self.prefix.rstrip('/')}/{name}"

    def jars(self, spark: Spark) -> str:
        """Those of a driver, as `--jars` wants them."""
        return ",".join(self.at(f"jars/{name}") for name in spark.jar_names)

    def steps(self, spark: Spark) -> list[str]:
        """How what is the same for every configuration gets there."""
        return [
            f"$ aws s3 cp {ENVIRONMENT} {self.at(ENVIRONMENT)}",
            f'$ for jar in $(python3 -m srm_spark.jars {spark.jar_set}); do aws s3 cp "$jar" {self.at("jars/")}; done',
        ]


def check_prefix(option: str, text: str) -> list[Problem]:
    """The problem of an address that is none below a bucket."""
    if _PREFIX.fullmatch(text):
        return []
    return [Problem(option, "", f"got {text!r}; allowed s3://bucket/folder, without blanks and commas")]
