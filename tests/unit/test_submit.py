"""What spark-submit.sh would run; nothing is run."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from srm_spark.cli.pack import requirements
from srm_spark.cli.submit import build_command, main, parse, render
from srm_spark.config.checkpoint_files import checkpoint_settings
from srm_spark.config.secrets import MASK, SPARK_REDACTION_REGEX
from srm_spark.errors import SetupError
from srm_spark.python_workers import DAEMON

JARS = [Path("/cache/a.jar"), Path("/cache/b.jar")]


def command(*arguments: str, **defaults: str) -> list[str]:
    settings = {name.replace("_", "."): value for name, value in defaults.items()}
    request = parse(["--config", "/etc/flows.properties", *arguments], settings)
    return build_command(request, Path("/spark"), Path("/venv/bin/python"), JARS, Path("/src"))


def value_of(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


def test_local_runs_in_the_virtual_environment_itself() -> None:
    assert command("--flow", "A->B", "--no-wait", "-D", "A->B.topics=t.*") == [
        *("/spark/bin/spark-submit", "--name", "srm-driver", "--master", "local[*]"),
        *("--conf", "spark.speculation=false", "--conf", "spark.log.level=WARN", "--conf", "spark.ui.enabled=false"),
        *("--conf", f"spark.redaction.regex={SPARK_REDACTION_REGEX}", "--conf", "spark.io.encryption.enabled=true"),
        *("--conf", "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension"),
        *("--conf", "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog"),
        *(word for key, value in checkpoint_settings().items() for word in ("--conf", f"{key}={value}")),
        *("--conf", "spark.pyspark.python=/venv/bin/python", "--conf", f"spark.python.daemon.module={DAEMON}"),
        *("--jars", "/cache/a.jar,/cache/b.jar"),
        *("/src/jobs/srm_driver.py", "--config", "/etc/flows.properties"),
        *("--flow", "A->B", "--no-wait", "-D", "A->B.topics=t.*"),
    ]


@pytest.mark.parametrize("defaults", [{}, {"spark_python_daemon_module": "site.daemon"}])
def test_a_daemon_of_workers_that_somebody_names_is_kept(defaults: dict[str, str]) -> None:
    asked = () if defaults else ("--conf", "spark.python.daemon.module=site.daemon")
    assert f"spark.python.daemon.module={DAEMON}" not in command(*asked, **defaults)


def test_a_client_of_a_cluster_sends_the_packed_environment_to_the_executors() -> None:
    words = command("--master", "yarn")
    assert value_of(words, "--archives") == "/src/build/srm-spark-env.tar.gz#environment"
    assert "spark.pyspark.python=./environment/bin/python" in words
    assert "spark.pyspark.driver.python=/venv/bin/python" in words
    assert "--files" not in words
    assert not any(DAEMON in word for word in words), "an environment of one's own may not have it"


def test_a_driver_in_the_cluster_gets_the_configuration_as_a_file() -> None:
    words = command("--master", "k8s://x", "--deploy-mode=cluster")
    assert value_of(words, "--files") == "/etc/flows.properties"
    assert value_of(words, "--config") == "flows.properties"
    assert not any(word.startswith("spark.pyspark.driver.python") for word in words)


@pytest.mark.parametrize(
    ("arguments", "defaults", "local"),
    [
        ((), {"spark_master": "yarn"}, False),
        (("--conf", "spark.master=yarn"), {}, False),
        (("--master", "local[2]"), {"spark_master": "yarn"}, True),
        (("--master", "local-cluster[2,1,1024]"), {}, False),
    ],
)
def test_the_master_is_found_where_spark_finds_it(
    arguments: tuple[str, ...], defaults: dict[str, str], local: bool
) -> None:
    assert ("--archives" not in command(*arguments, **defaults)) == local


def test_the_ui_of_spark_is_off_unless_it_is_asked_for() -> None:
    for words in (command("--conf", "spark.ui.enabled=true"), command(spark_ui_enabled="true")):
        assert "spark.ui.enabled=false" not in words


def test_a_redaction_of_the_users_own_is_kept() -> None:
    for words in (command("--conf", "spark.redaction.regex=x"), command(spark_redaction_regex="x")):
        assert not any("jaas" in word for word in words)


def test_lists_of_the_user_are_joined_with_ours() -> None:
    words = command("--jars", "/mine.jar", "--files", "/ca.pem", "--master", "yarn", "--archives", "/m.zip#m")
    assert value_of(words, "--jars") == "/cache/a.jar,/cache/b.jar,/mine.jar"
    assert value_of(words, "--files") == "/ca.pem"
    assert value_of(words, "--archives") == "/src/build/srm-spark-env.tar.gz#environment,/m.zip#m"
    assert words.count("--jars") == 1


@pytest.mark.parametrize("given", [(), ("--conf", "spark.jars=/handler.jar, /b.jar")])
def test_jars_of_a_setting_are_joined_with_ours_for_spark_would_forget_them(given: tuple[str, ...]) -> None:
    defaults = {} if given else {"spark_jars": "/handler.jar,/b.jar"}
    assert value_of(command(*given, **defaults), "--jars") == "/cache/a.jar,/cache/b.jar,/handler.jar,/b.jar"
    assert value_of(command(*given, "--jars", "/mine.jar", **defaults), "--jars").endswith("/b.jar,/mine.jar")
    assert "--files" not in command(spark_files="/ca.pem"), "where we have none, Spark reads the setting itself"


def test_two_files_that_would_be_one_where_the_driver_runs_are_refused() -> None:
    place = ("--master", "yarn", "--deploy-mode", "cluster")
    with pytest.raises(SetupError, match=r"/etc/flows\.properties and /prod/flows\.properties would both be flows"):
        command("--config", "/prod/flows.properties", *place)
    with pytest.raises(SetupError, match=r"/etc/flows\.properties and /x would both be flows\.properties"):
        command("--files", "/y,/x#flows.properties", *place)
    with pytest.raises(SetupError, match=r"/etc/flows\.properties and /x/flows\.properties would both be flows"):
        command("--conf", "spark.files=/x/flows.properties", *place)
    command("--config", "/prod/flows.properties", "--master", "yarn")
    words = command("--config", "/prod/other.properties", "--files", "/etc/flows.properties", *place)
    assert value_of(words, "--files") == "/etc/flows.properties,/prod/other.properties,/etc/flows.properties"


def test_options_of_spark_keep_their_values_whatever_they_look_like() -> None:
    words = command("--driver-java-options", "--add-opens=a/b=ALL", "--verbose", "--conf", "spark.x=1")
    at = words.index("--driver-java-options")
    assert words[at : at + 5] == ["--driver-java-options", "--add-opens=a/b=ALL", "--verbose", "--conf", "spark.x=1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--master", "yarn"], "--config FILE is missing"),
        (["--config"], "--config needs a value"),
        (["--config", "f", "other.py"], "unexpected argument 'other.py'"),
    ],
)
def test_wrong_arguments_are_explained(arguments: list[str], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        parse(arguments)


def test_the_printed_command_is_what_a_shell_would_run() -> None:
    words = command("--flow", "A->B", "--driver-java-options", "-Da=b -Dc=d", "--verbose")
    printed = render(words, {"JAVA_HOME": "/jdk 17"})
    assert printed.splitlines()[:2] == ["JAVA_HOME='/jdk 17' \\", "  /spark/bin/spark-submit \\"]
    assert shlex.split(printed.replace("\\\n", " ")) == ["JAVA_HOME=/jdk 17", *words]
    assert "  --flow 'A->B'" in printed


def test_secrets_of_settings_are_not_printed() -> None:
    login = 'x.PlainLoginModule required username="u" password="hunter2";'
    words = command("-D", f"A.sasl.jaas.config={login}", "--conf", "spark.hadoop.fs.s3a.secret.key=hunter2")
    printed = render(words, {})
    assert "hunter2" not in printed
    assert printed.count(MASK) == 2
    assert render(command("-D", "A.ssl.key.password=${env:X}"), {}).endswith("-D 'A.ssl.key.password=${env:X}'")


@pytest.mark.parametrize(("more", "master"), [((), "local[*]"), (("--load-spark-defaults",), "yarn")])
def test_a_file_of_settings_is_read_as_spark_reads_it(
    more: tuple[str, ...],
    master: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.master yarn\nspark.ui.enabled false\n")
    (tmp_path / "my.conf").write_text("# mine\nspark.ui.enabled=true\nspark.jars  /m.jar \n")
    monkeypatch.setattr("srm_spark.cli.submit.fetch", lambda _: JARS)
    environment = {"SPARK_CONF_DIR": str(tmp_path), "SPARK_HOME": "/spark", "SRM_DRY_RUN": "1"}
    main(["--config", "f", "--properties-file", str(tmp_path / "my.conf"), *more], environment)
    words = shlex.split(capsys.readouterr().out.replace("\\\n", " "))
    assert value_of(words, "--master") == master
    assert value_of(words, "--jars") == "/cache/a.jar,/cache/b.jar,/m.jar"
    assert "spark.ui.enabled=false" not in words
    main(["--config", "f"], environment)
    assert "--master yarn" in capsys.readouterr().out
    with pytest.raises(SetupError, match=r"--properties-file /nowhere is no file"):
        main(["--config", "f", "--properties-file", "/nowhere"], environment)


def test_without_arguments_the_usage_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    assert capsys.readouterr().out.startswith("usage: ./spark-submit.sh --config FILE")


def test_the_packed_environment_has_native_clients_but_no_spark() -> None:
    names = " ".join(requirements())
    assert "confluent-kafka" in names
    assert "pyarrow" in names
    assert "numba" in names
    assert "extra" not in names
    assert "pyspark" not in names
