"""The jars that Spark, the brokers and the Java judges need, and the Java that runs them.

`manifest.py` is the one list of versions, `jars.lock` names every jar that follows from it with its checksum,
`fetch.py` downloads what is missing with the Apache Ivy of the pyspark wheel. Imports nothing of srm_spark but the
errors.
"""

from srm_spark.jars.fetch import cached, fetch
from srm_spark.jars.java import JavaRuntime, ensure_java, find_java, java_command, java_home, unfit_java_home
from srm_spark.jars.manifest import DELTA_SETTINGS, DRIVERS, JAR_SETS, KAFKA, OTHER_KAFKAS, Dependency, JarSet

__all__ = [
    "DELTA_SETTINGS",
    "DRIVERS",
    "JAR_SETS",
    "KAFKA",
    "OTHER_KAFKAS",
    "Dependency",
    "JarSet",
    "JavaRuntime",
    "cached",
    "ensure_java",
    "fetch",
    "find_java",
    "java_command",
    "java_home",
    "unfit_java_home",
]
