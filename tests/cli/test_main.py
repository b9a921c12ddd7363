"""The command `kernelmill`: its tree, help, completion, suggestions and exit codes."""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

import click
import pytest

from pipeline.cli.main import SECTIONS, kernelmill, main
from tests import warm_commands
from tests.paths import ROOT

HEAVY = ("torch", "triton", "hydra", "mlflow", "snakemake", "pandas", "grimp", "numpy", "rich")


def commands(group: click.Group = kernelmill, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of all commands."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        yield (*path, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


ALL = list(commands())
LEAVES = [path for path in ALL if not any(other[:-1] == path for other in ALL)]


def test_help_fits_one_screen(capsys: pytest.CaptureFixture[str]) -> None:
    """Every command with its summary, in 40 lines of 80 columns."""
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    for section in SECTIONS.values():
        for name, summary in section.items():
            assert any(line.split(maxsplit=1) == [name, summary] for line in lines)


def test_help_imports_nothing_heavy() -> None:
    """It is asked for often."""
    program = (
        "import sys; from pipeline.cli.main import main; main(['--help'])\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ended.stderr.strip() == "[]"


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_has_help(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """Leaves with two examples, which are commands that exist with options that exist."""
    assert main([*path, "--help"]) == 0
    text = capsys.readouterr().out
    if path not in LEAVES or path == ("completion",):
        return
    examples = [
        line.strip() for line in text.splitlines() if line.strip().startswith(f"kernelmill {' '.join(path)}")
    ]
    assert len([line for line in examples if not line.startswith("Usage")]) >= 2
    for line in examples:
        words = shlex.split(line.split(" | ")[0])[1:]
        context = kernelmill.make_context("kernelmill", list(words), resilient_parsing=True)
        command: click.Command = kernelmill
        arguments = list(words)
        while isinstance(command, click.Group):
            found = command.get_command(context, arguments.pop(0))
            assert found is not None
            command = found
        command.make_context(command.name, arguments, obj={})


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["rnu"], "error: no command 'rnu'; did you mean 'run'? (kernelmill --help)"),
        (
            ["plan", "--variant"],
            "error: no such option '--variant'. Did you mean '--variants'? (kernelmill plan --help)",
        ),
        (
            ["run", "--cgf", "job"],
            "error: no such option '--cgf'. Did you mean '--cfg'? (kernelmill run --help)",
        ),
        (["judge"], "error: missing argument 'DIR' (kernelmill judge --help)"),
        (
            ["run", "--experiment", "smoke"],
            "error: no such option '--experiment': overrides have no dashes, write experiment=NAME "
            "(kernelmill run --help)",
        ),
    ],
)
def test_a_typo_suggests_the_nearest_name(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, and the exit code of a wrong command line."""
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"{text}\n"


def test_exit_codes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """In one place."""
    assert main(["--exit-codes"]) == 0
    codes = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert codes == ["0", "1", "2", "3", "130", "143"]


def complete(line: str) -> list[str]:
    """Candidates as bash gets them."""
    environment = {**os.environ, "_KERNELMILL_COMPLETE": "bash_complete", "COMP_LINE": line}
    environment["COMP_POINT"] = str(len(line.encode()))
    ended = warm_commands.run(["-m", "pipeline"], cwd=ROOT, env=environment)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("kernelmill ru", ["run", "runs"]),
        ("kernelmill bundle in", ["ingest"]),
        ("kernelmill plan --va", ["--variants"]),
        ("kernelmill run kern", ["kernel="]),
        ("kernelmill run kernel=soft", ["softmax", "softmax_backward"]),
        ("kernelmill run kernel=matmul,rms_norm_", ["matmul,rms_norm_backward"]),
        ("kernelmill sweep experiment=smoke workload=bert", ["bert_base"]),
        ("kernelmill run experiment=paper/lig", ["paper/liger_kernel"]),
        ("kernelmill run verify.see", ["verify.seeds="]),
        ("kernelmill judge DIR --hardware h2", ["h200"]),
        ("kernelmill code di", ["diff"]),
    ],
)
def test_completion(line: str, expected: list[str]) -> None:
    """Commands, options, groups and their options; bash inserts what follows the last `=`."""
    assert complete(line) == expected


def test_completion_is_fast() -> None:
    """Nobody waits for a Tab; three tries, because other processes may run."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        complete("kernelmill run kernel=so")
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A script that the shell itself accepts, where it is installed."""
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "_KERNELMILL_COMPLETE" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_completion_in_bash(tmp_path) -> None:
    """Sourced as a user does, with bash's own way to call it."""
    script = subprocess.run(
        [sys.executable, "-m", "pipeline", "completion", "bash"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    program = tmp_path / "kernelmill"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m pipeline "$@"\n')
    program.chmod(0o755)
    asked = f"""{script}
COMP_LINE='kernelmill run kernel=soft'; COMP_POINT=${{#COMP_LINE}}
compopt() {{ :; }}
_kernelmill_completion 2>/dev/null; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    path = f"{tmp_path}:{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "-c", asked],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.split() == ["softmax", "softmax_backward"]


def test_a_closed_pipe_is_no_error() -> None:
    """`… | head` ends well and prints no traceback."""
    command = f"{shlex.quote(sys.executable)} -m pipeline --help | head -n 1; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
