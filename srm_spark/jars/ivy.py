"""One download with the Apache Ivy that the pyspark wheel carries: a jar set in, a folder of jars out."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from pathlib import Path
from xml.sax.saxutils import quoteattr

from srm_spark.errors import SetupError
from srm_spark.jars.manifest import Dependency, JarSet

REPOSITORY_VARIABLE = "SRM_SPARK_MAVEN_REPO"

_ATTEMPTS = 3
"""A repository drops a connection now and then among 94 jars; Ivy's cache lets the next attempt go on from there."""


def retrieve(jar_set: JarSet, java: str, work: Path, destination: Path) -> None:
    """Download the jars of the set into `destination`; `work` holds Ivy's files and cache."""
    work.mkdir(parents=True, exist_ok=True)
    (work / "settings.xml").write_text(_settings_xml(os.environ.get(REPOSITORY_VARIABLE, "")))
    (work / f"{jar_set.name}.xml").write_text(_module_xml(jar_set))
    command = [java, "-jar", str(_ivy_jar()), "-cache", str(work / "cache"), "-settings", str(work / "settings.xml")]
    command += ["-ivy", str(work / f"{jar_set.name}.xml"), "-confs", jar_set.name]
    command += ["-retrieve", str(destination / "[artifact]-[revision].[ext]")]
    for _ in range(_ATTEMPTS):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
    raise SetupError(_failure(jar_set, done.stdout + done.stderr))


def _ivy_jar() -> Path:
    # pyspark is looked up, not imported: importing it costs a second, and only srm_spark.spark may.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SetupError("pyspark is not installed, and its wheel carries Apache Ivy; run: make setup")
    found = sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise SetupError(f"no ivy-*.jar in {Path(spec.origin).parent / 'jars'}: pyspark must come from its PyPI wheel")
    return found[-1]


def _settings_xml(repository: str) -> str:
    root = f" root={quoteattr(_repository_url(repository))}" if repository else ""
    return (
        '<ivysettings><settings defaultResolver="maven"/>'
        f'<resolvers><ibiblio name="maven" m2compatible="true"{root}/></resolvers></ivysettings>\n'
    )


def _repository_url(repository: str) -> str:
    url = repository if "://" in repository else Path(repository).expanduser().resolve().as_uri()
    return url.rstrip("/") + "/"


def _module_xml(jar_set: JarSet) -> str:
    # `runtime(*),master(*)` is Ivy's reading of Maven's runtime scope: the jar itself and what it needs to run.
    mapping = "runtime(*),master(*)" if jar_set.transitive else "default"
    conf = f"{jar_set.name}->{mapping}"
    lines = "".join(_dependency_xml(dependency, jar_set.transitive, conf) for dependency in jar_set.dependencies)
    return (
        f'<ivy-module version="2.0"><info organisation="srm-spark" module={quoteattr(jar_set.name)}/>\n'
        f"<configurations><conf name={quoteattr(jar_set.name)}/></configurations>\n"
        f"<dependencies>\n{lines}</dependencies></ivy-module>\n"
    )


def _dependency_xml(dependency: Dependency, transitive: bool, conf: str) -> str:
    return (
        f"<dependency org={quoteattr(dependency.group)} name={quoteattr(dependency.artifact)}"
        f' rev={quoteattr(dependency.version)} transitive="{str(transitive).lower()}" conf={quoteattr(conf)}/>\n'
    )


def _failure(jar_set: JarSet, output: str) -> str:
    missing = sorted({f"{g}:{a}:{v}" for g, a, v in re.findall(r":: (\S+)#(\S+?);(\S+): not found", output)})
    reasons = re.findall(r"Server access error at url \S+ \((.+?)\)\s*$", output, flags=re.MULTILINE)
    where = os.environ.get(REPOSITORY_VARIABLE, "") or "Maven Central"
    if reasons:
        what = f"{where} does not answer ({reasons[0]})"
    elif missing:
        what = f"{where} does not hold {', '.join(missing)}"
    else:
        what = f"Apache Ivy says:\n{output.strip()[-2000:]}\n"
    return (
        f"cannot download the jars of set {jar_set.name!r} ({jar_set.purpose}): {what}; "
        f"check the network, or set {REPOSITORY_VARIABLE} to a Maven repository that is reachable (URL or directory)"
    )
