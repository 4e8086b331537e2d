"""Shells complete commands, options, choices and files: asked of click itself, and through the printed scripts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

import srm_spark
from srm_spark.cli.completion import SHELLS, completion_of, variable
from srm_spark.cli.control import main
from srm_spark.cli.driver import run
from srm_spark.cli.service import run as serve

PROGRAMS: dict[str, click.Command] = {"srm-control": main, "srm-driver": run, "srm-service": serve}


def completions(line: str) -> list[str]:
    """What there is for the last word of a line; a type in front where it is none of ours."""
    program, *words, incomplete = line.split(" ")
    found = ShellComplete(PROGRAMS[program], {}, program, variable(program)).get_completions(words, incomplete)
    return [item.value if item.type == "plain" else f"{item.type}:{item.value}" for item in found]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # names of commands
        ("srm-control dr", ["drift", "drivers"]),
        ("srm-control gr", ["groups"]),
        ("srm-control deploy k", ["kubernetes"]),
        ("srm-control --config f re", ["restart", "resume", "reverse-checkpointed-topics"]),
        ("srm-control groups ", ["status"]),
        ("srm-control offsets re", ["rebuild", "rewind"]),
        ("srm-control offsets ", ["list", "rebuild", "rewind", "set", "skip", "translate"]),
        ("srm-control config v", ["validate"]),
        ("srm-driver d", ["doctor"]),
        ("srm-driver --clusters A B ", ["completion", "doctor"]),
        # options
        ("srm-control --con", ["--config", "--consumer-props"]),
        ("srm-control topics --add-", ["--add-allowlist", "--add-blacklist", "--add-denylist"]),
        ("srm-control topics --add orders --so", ["--source"]),
        ("srm-control groups --add billing --hi", ["--history"]),
        ("srm-control offsets --ex", ["--export"]),
        ("srm-control offsets --export --so", ["--source"]),
        ("srm-control offsets --he", ["--help"]),
        ("srm-control config show --resolved --wr", []),
        ("srm-control pause --flow A->B --pa", ["--partition"]),
        ("srm-driver --config f --log-p", ["--log-progress"]),
        # options that were cut short, one of them with several meanings, change nothing about the rest
        ("srm-control topics --sourc A --ta", ["--target"]),
        ("srm-control topics --add- orders --ta", ["--target"]),
        # choices
        ("srm-control status -o ", ["text", "wide", "json", "yaml"]),
        ("srm-control groups --list -o w", ["wide"]),
        ("srm-control offsets --export -o ", ["csv", "json"]),
        ("srm-control completion ", list(SHELLS)),
        ("srm-driver --log-level W", ["WARNING"]),
        # files
        ("srm-control --config sr", ["file:sr"]),
        ("srm-control topics --import li", ["file:li"]),
        ("srm-control config validate sr", ["file:sr"]),
        ("srm-control config validate one.yaml ", ["file:"]),
        ("srm-control apply --config f pl", ["file:pl"]),
        ("srm-control offsets translate --file=he", ["file:he"]),
        ("srm-driver --pid-file ", ["file:"]),
        ("srm-control deploy kubernetes --out ", ["dir:"]),
        ("srm-driver doctor --config sr", ["file:sr"]),
        # what nobody can know
        ("srm-control pause --flow ", []),
    ],
)
def test_what_there_is_for_a_word(line: str, expected: list[str]) -> None:
    assert completions(line) == expected


def _paths(command: click.Command, path: str) -> list[str]:
    below = command.commands if isinstance(command, click.Group) else {}
    return [path, *(each for name, one in below.items() if not one.hidden for each in _paths(one, f"{path} {name}"))]


@pytest.mark.parametrize("path", [path for name, command in PROGRAMS.items() for path in _paths(command, name)])
def test_every_command_is_completed_and_completes(path: str) -> None:
    assert "--help" in completions(f"{path} --")
    parent, _, name = path.rpartition(" ")
    assert not parent or name in completions(path)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_script_is_for_the_program_of_its_name(program: str, shell: str) -> None:
    """Whatever the command that printed it was called."""
    result = CliRunner().invoke(PROGRAMS[program], ["completion", shell], prog_name="./other")
    assert result.exit_code == 0
    assert f"{variable(program)}={shell}_complete" in result.stdout
    assert f"_{program.replace('-', '_')}_completion" in result.stdout
    assert "other" not in result.stdout


def test_the_help_says_how_to_install_it() -> None:
    text = CliRunner().invoke(main, ["completion", "--help"]).stdout
    for words in ('eval "$(srm-control completion bash)"', "~/.zshrc", "~/.config/fish/completions/srm-control.fish"):
        assert words in text


def test_another_shell_is_a_wrong_command_line() -> None:
    assert CliRunner().invoke(completion_of("srm-control"), ["tcsh"]).exit_code == 2


ASKS = {
    # A function in place of the builtin, which works in a completion of a terminal only.
    "bash": """
compopt() {{ printf 'compopt %s %s\\n' "$@"; }}
source ./script
complete -p {program} >/dev/null || exit 1
COMP_WORDS=({line}) COMP_CWORD={last}
_{function}_completion {program}
printf '%s\\n' "${{COMPREPLY[@]}}"
""",
    "zsh": """
compdef() {{ :; }}
compadd() {{ print -l -- $completions; }}
_describe() {{ print -l -- ${{completions_with_descriptions%%:*}}; }}
_path_files() {{ print -- "files $*"; }}
source ./script
words=({line}) CURRENT={current}
_{function}_completion
""",
    "fish": """
source ./script
complete --do-complete '{joined}'
""",
}
FILES_SAID = {"bash": ["compopt -o default"], "zsh": ["files -f"], "fish": ["srm.properties"]}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with both programs, as an installation makes them, and a file."""
    for name, module in (("srm-control", "control"), ("srm-driver", "driver")):
        path = tmp_path / name
        path.write_text(f"#!{sys.executable}\nfrom srm_spark.cli.{module} import main\nmain()\n")
        path.chmod(0o755)
    (tmp_path / "srm.properties").touch()
    return tmp_path


def ask(shell: str, line: list[str], programs: Path) -> list[str]:
    """What that shell would offer for the last word."""
    executable = shutil.which(shell)
    if executable is None:
        pytest.skip(f"no {shell} on this machine")
    program = line[0]
    (programs / "script").write_text(CliRunner().invoke(PROGRAMS[program], ["completion", shell]).stdout)
    asked = ASKS[shell].format(
        program=program,
        function=program.replace("-", "_"),
        line=" ".join(f"'{word}'" for word in line),
        last=len(line) - 1,
        current=len(line),
        joined=" ".join(line),
    )
    env = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(srm_spark.__file__).parents[1]),
        "HOME": str(programs),
    }
    done = subprocess.run(
        [executable, *(("-f",) if shell == "zsh" else ()), "-c", asked],
        cwd=programs, env=env, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return [word for answer in done.stdout.splitlines() if (word := answer.partition("\t")[0])]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["srm-control", "offsets", "re"], ["rebuild", "rewind"]),
        (["srm-control", "pause", "--flow", "A->B", "--pa"], ["--partition"]),
        (["srm-control", "groups", "--list", "-o", ""], ["json", "text", "wide"]),
        (["srm-control", "config", "validate", "srm.pr"], None),
        (["srm-driver", "do"], ["doctor"]),
    ],
    ids=["command", "option", "choice", "file", "driver"],
)
def test_a_real_shell_completes(shell: str, line: list[str], expected: list[str] | None, programs: Path) -> None:
    assert sorted(ask(shell, line, programs)) == (FILES_SAID[shell] if expected is None else expected)
