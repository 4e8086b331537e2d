"""`spark-submit.sh`: turns our arguments into one spark-submit command, prints it, and runs it.

| master, deploy mode | Python of the driver | Python of the executors |
|---|---|---|
| `local[…]` | `.venv` | `.venv` |
| a cluster, client | `.venv` | the packed environment |
| a cluster, cluster | the packed environment | the packed environment |
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import javaproperties

from srm_spark.cli.pack import ARCHIVE, pack
from srm_spark.cli.supervise import run_submit
from srm_spark.config.checkpoint_files import checkpoint_settings
from srm_spark.config.secrets import SPARK_SETTINGS, mask
from srm_spark.errors import SetupError, SrmError
from srm_spark.jars import DELTA_SETTINGS, fetch, java_home
from srm_spark.python_workers import DAEMON, DAEMON_KEY

ROOT = Path(__file__).resolve().parents[2]
PRINT_VARIABLE = "SRM_DRY_RUN"

USAGE = """\
usage: ./spark-submit.sh --config FILE [spark-submit options] [srm-driver options] [--print]

  --config FILE   the flows; may be repeated
  --print         only print the spark-submit command, secrets as stars (so does SRM_DRY_RUN=1)

--flow, -D, --no-wait and --log-level go to srm-driver, everything else to spark-submit (--master, --conf, …).
SPARK_HOME says whose spark-submit runs; without it that of the pyspark wheel does. The master is local[*] unless an
option, --properties-file or spark-defaults.conf names another. For a cluster a virtual environment is packed with the
Python of SRM_PACK_PYTHON (default: the one of .venv); every node needs that Python at the same path.
"""

_DRIVER_OPTIONS = {"--flow", "-D", "--log-level"}
_DRIVER_FLAGS = {"--no-wait"}
_SPARK_FLAGS = {"--verbose", "-v", "--supervise", "--version", "--load-spark-defaults"}
_PLACE = {"--master": "spark.master", "--deploy-mode": "spark.submit.deployMode"}
_LISTS = {"--jars": "spark.jars", "--files": "spark.files", "--archives": "spark.archives"}
"""spark-submit takes the last of each and forgets the others, its setting, too; so the user's and ours become one."""
_PROPERTIES = "--properties-file"
_KEYED = {"-D", "--conf"}
"""Options whose value is a key and its value."""

_SETTINGS = (
    # A cluster whose spark-defaults.conf turns it on would make the driver refuse to start.
    "spark.speculation=false",
    # Spark's Kafka source writes twenty lines a batch at INFO.
    "spark.log.level=WARN",
)
_UNLESS_SAID: Mapping[str, str] = {
    # It listens on every interface without a login, and where 17 ports in a row are taken the driver does not start.
    "spark.ui.enabled": "false",
    # A site's own regex may hide more than ours; the driver warns of one that hides too little.
    **SPARK_SETTINGS,
    # A site that names extensions or a catalog of its own keeps them, and goes without tables.
    **DELTA_SETTINGS,
}
"""Settings that the user or spark-defaults.conf may say otherwise."""


@dataclass
class Request:
    """The arguments, sorted by whom they are for."""

    configs: list[Path] = field(default_factory=list)
    driver: list[str] = field(default_factory=list)
    spark: list[str] = field(default_factory=list)
    lists: dict[str, list[str]] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    """Of spark-defaults.conf, or the file that is read in its place, and of `--conf`."""
    properties: Path | None = None
    """The file that Spark reads in place of spark-defaults.conf."""
    master: str = ""
    deploy_mode: str = "client"
    print_only: bool = False

    @property
    def is_local(self) -> bool:
        """Whether driver and executors are one process on this machine."""
        # `local-cluster[…]` has executors of its own.
        return self.master == "local" or self.master.startswith("local[")

    @property
    def is_remote_driver(self) -> bool:
        """Whether the driver runs where this machine's files are not."""
        return not self.is_local and self.deploy_mode == "cluster"


def parse(arguments: Sequence[str], defaults: Mapping[str, str] | None = None) -> Request:
    """Sort the arguments; `defaults` are the settings of files of Spark's."""
    settings = dict(defaults or {})
    request = Request(settings=settings)
    rest = list(arguments)
    while rest:
        option = rest.pop(0)
        if option == "--print":
            request.print_only = True
        elif option in _DRIVER_FLAGS:
            request.driver.append(option)
        elif option in _SPARK_FLAGS:
            request.spark.append(option)
        elif not option.startswith("-"):
            raise SetupError(
                f"unexpected argument {option!r}; the driver to run is always jobs/srm_driver.py\n\n{USAGE}"
            )
        else:
            option, value = _with_value(option, rest)
            _sort_in(request, settings, option, value)
    if not request.configs:
        raise SetupError(f"--config FILE is missing\n\n{USAGE}")
    request.master = settings.get("spark.master", "local[*]")
    request.deploy_mode = settings.get("spark.submit.deployMode", "client")
    return request


def build_command(
    request: Request, spark_home: Path, python: Path, jars: Sequence[Path], root: Path = ROOT
) -> list[str]:
    """The whole spark-submit command. Ours comes first where the user may say otherwise: the last --conf wins."""
    command = [str(spark_home / "bin" / "spark-submit"), "--name", "srm-driver", "--master", request.master]
    sayable = {**_UNLESS_SAID, **checkpoint_settings()}
    unless_said = [f"{key}={value}" for key, value in sayable.items() if key not in request.settings]
    for setting in (*_SETTINGS, *unless_said):
        command += ["--conf", setting]
    lists = {"--jars": [str(jar) for jar in jars]}
    configs = [str(config.resolve()) for config in request.configs]
    if request.is_local:
        command += ["--conf", f"spark.pyspark.python={python}"]
        command += [] if DAEMON_KEY in request.settings else ["--conf", f"{DAEMON_KEY}={DAEMON}"]
    else:
        lists["--archives"] = [f"{root / ARCHIVE}#environment"]
        command += ["--deploy-mode", request.deploy_mode, "--conf", "spark.pyspark.python=./environment/bin/python"]
        if not request.is_remote_driver:
            command += ["--conf", f"spark.pyspark.driver.python={python}"]
    if request.is_remote_driver:
        # There the files lie in the working directory of the driver.
        lists["--files"] = configs
        configs = [config.name for config in request.configs]
    command += request.spark
    for option in sorted(_LISTS):
        ours = lists.get(option, [])
        values = [*ours, *_of_user(request, option, has_ours=bool(ours))]
        if option == "--files" and request.is_remote_driver:
            _require_different_names(values)
        command += [option, ",".join(values)] if values else []
    command.append(str(root / "jobs" / "srm_driver.py"))
    for config in configs:
        command += ["--config", config]
    return command + request.driver


def _of_user(request: Request, option: str, *, has_ours: bool) -> list[str]:
    """What the user has in a list. Spark takes the setting itself, unless we give it the option."""
    setting = request.settings.get(_LISTS[option], "") if has_ours else ""
    text = ",".join(request.lists.get(option, [])) or setting
    return [each.strip() for each in text.split(",") if each.strip()]


def _require_different_names(files: Sequence[str]) -> None:
    """Raises SetupError where two files would be one in the driver's folder: the first would be dropped unseen."""
    places: dict[str, set[str]] = {}
    for file in files:
        path, _, name = file.partition("#")
        places.setdefault(name or Path(path).name, set()).add(path)
    for name, paths in places.items():
        if len(paths) > 1:
            raise SetupError(
                f"{' and '.join(sorted(paths))} would both be {name} where the driver runs, and only one would be "
                "read; give them different names"
            )


def render(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """The command as a shell reads it, an option a line; secrets among its settings are stars."""
    lines = [f"{name}={shlex.quote(value)}" for name, value in environment.items()] + [shlex.quote(command[0])]
    for before, each in pairwise(command):
        key, _, value = each.partition("=")
        word = f"{key}={mask(key, value)}" if before in _KEYED and value else each
        previous_is_option = lines[-1].startswith("-") and " " not in lines[-1] and lines[-1] not in _SPARK_FLAGS
        if previous_is_option and not word.startswith("-"):
            lines[-1] += f" {shlex.quote(word)}"
        else:
            lines.append(shlex.quote(word))
    return " \\\n  ".join(lines)


def main(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> None:
    """Print the command; run it unless asked only to print."""
    if not arguments or {"-h", "--help"} & set(arguments):
        print(USAGE, end="")
        return
    spark_home = Path(environment["SPARK_HOME"]) if environment.get("SPARK_HOME") else _wheel_home()
    asked = parse(arguments)
    request = parse(arguments, _spark_defaults(asked, spark_home, environment))
    ours = {"SPARK_HOME": str(spark_home), "JAVA_HOME": str(java_home())}
    command = build_command(request, spark_home, Path(sys.executable), fetch("driver"))
    if request.print_only or environment.get(PRINT_VARIABLE, "") not in {"", "0"}:
        print(render(command, ours))
        return
    if not request.is_local:
        pack(ROOT)
    print(render(command, ours), file=sys.stderr, flush=True)
    if request.is_remote_driver:  # this process only watches it
        os.execve(command[0], command, {**environment, **ours})  # noqa: S606 - no shell is what is wanted
    raise SystemExit(run_submit(command, {**environment, **ours}))


def _with_value(option: str, rest: list[str]) -> tuple[str, str]:
    if option.startswith("--") and "=" in option:
        name, _, value = option.partition("=")
        return name, value
    if not rest:
        raise SetupError(f"{option} needs a value\n\n{USAGE}")
    return option, rest.pop(0)


def _sort_in(request: Request, settings: dict[str, str], option: str, value: str) -> None:
    if option == "--config":
        request.configs.append(Path(value))
    elif option in _DRIVER_OPTIONS:
        request.driver += [option, value]
    elif option in _LISTS:
        request.lists.setdefault(option, []).append(value)
    elif option in _PLACE:
        settings[_PLACE[option]] = value
    else:
        request.spark += [option, value]
        if option == _PROPERTIES:
            request.properties = Path(value)
        if option == "--conf":
            name, _, setting = value.partition("=")
            settings[name] = setting


def _wheel_home() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SetupError("no Spark found: set SPARK_HOME, or run: make setup")
    return Path(spec.origin).parent


def _spark_defaults(request: Request, spark_home: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """What Spark will find in its files."""
    common = Path(environment.get("SPARK_CONF_DIR") or spark_home / "conf") / "spark-defaults.conf"
    if request.properties is None:
        return _settings(common) if common.is_file() else {}
    if not request.properties.is_file():
        raise SetupError(f"{_PROPERTIES} {request.properties} is no file")
    own = _settings(request.properties)
    return {**_settings(common), **own} if "--load-spark-defaults" in request.spark and common.is_file() else own


def _settings(path: Path) -> dict[str, str]:
    """As Spark reads them: Java's properties, without white space around the values."""
    return {key: value.strip() for key, value in javaproperties.loads(path.read_text(encoding="utf-8")).items()}


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except SrmError as problem:
        print(f"spark-submit.sh: {problem}", file=sys.stderr)
        raise SystemExit(2) from None
