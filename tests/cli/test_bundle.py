"""`kernelmill bundle`: its command line, and the way there and back as one would go it."""

import errno
import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.execution.bundle import operations, packing
from tests.end_to_end.checkout import Checkout
from tests.execution.bundle.made_up import bundle_of, make_run
from tests.paths import ROOT

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
SMOKE = ("experiment=smoke", "hardware=cpu", "kernel=softmax,matmul")


def command(checkout: Checkout, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of `kernelmill bundle` in a checkout."""
    return subprocess.run(
        [sys.executable, "-m", "pipeline", "bundle", *arguments],
        cwd=checkout.folder,
        env=checkout.environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Experiment, device, tasks with their outcomes, environment, and what stayed."""
    bundle_of(make_run(tmp_path / "artifacts"), tmp_path / "a.kmb")
    assert main(["bundle", "show", str(tmp_path / "a.kmb")]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("smoke: One variant of each kernel")
    assert (
        "softmax x awkward x cpu x defaults\n    compile 1 passed · verify 1 passed · profile 1 passed"
        in shown
    )
    assert "python " in shown and "left out 1 binary file, 0.0 MiB (binaries stay unless" in shown


def test_errors_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is no bundle, and overrides that do not exist."""
    (tmp_path / "a.kmb").write_bytes(b"hello")
    assert main(["bundle", "show", str(tmp_path / "a.kmb")]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {tmp_path}/a.kmb: not a bundle") and error.count("\n") == 1
    assert main(["bundle", "pack", "experiment=nothing", "--out", str(tmp_path / "job.pyz")]) == 2
    assert "nothing" in capsys.readouterr().err
    assert not (tmp_path / "job.pyz").exists()


def test_for_the_python_that_packs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless another one is named; the output says how."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(packing, "files_of", lambda *_: {})  # may ask the network for another Python's
    for more, version in ([], HERE), (["--python", "3.99"], "3.99"):
        assert main(["bundle", "pack", "experiment=smoke", "--out", str(tmp_path / "job.pyz"), *more]) == 0
        assert f"for Python {version} on {platform.machine()} (another: --python, --machine)" in (
            capsys.readouterr().out
        )


@pytest.mark.parametrize("arguments", [["pack", "experiment=smoke"], ["run"]])
def test_where_no_project_is(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Said as such, not as an option that does not exist."""
    monkeypatch.chdir(tmp_path)
    assert main(["bundle", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {tmp_path}: no project is here") and error.count("\n") == 1


def test_a_full_disk_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wherever it is noticed; what is not the disk's fault stays a traceback."""

    def failing(files: object) -> int:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(operations, "show", failing)
    error = errno.ENOSPC
    assert main(["bundle", "show", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("error: No space left on device (the same command continues")
    error = errno.EBADF
    with pytest.raises(OSError, match="Bad file descriptor"):
        main(["bundle", "show", str(tmp_path)])


def test_libraries_that_are_missing_are_named() -> None:
    """All at once, with the way out, by a Python that has none of them."""
    command = [sys.executable, "-S", "-m", "pipeline", "bundle", "show", "a.kmb"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: this environment lacks click, msgspec, grimp, hydra-core, numpy, ")
    assert "kernelmill bundle pack" in ended.stderr and ended.stderr.count("\n") == 1


def runs_of(checkout: Checkout) -> dict[str, dict[str, str]]:
    """Tags of the active measured runs in the checkout's MLflow, by run."""
    program = (
        "import json; from mlflow import MlflowClient\n"
        "client = MlflowClient('sqlite:///artifacts/mlflow/mlflow.db')\n"
        "one = client.get_experiment_by_name('kernelmill').experiment_id\n"
        "models = client.search_registered_models()\n"
        "print(json.dumps({model.name: dict(model.aliases) for model in models}))\n"
        "print(json.dumps({run.info.run_id: dict(run.data.tags) for run in client.search_runs([one])}))"
    )
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=checkout.folder,
        env={**checkout.environment, "MLFLOW_DISABLE_TELEMETRY": "true"},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    models, runs = (json.loads(line) for line in ended.stdout.splitlines()[-2:])
    assert all(alias.startswith("cpu-") for aliases in models.values() for alias in aliases), models
    return runs


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_there_and_back(tmp_path: Path) -> None:
    """Packed, run elsewhere, killed, run on, brought home, taken once and once again."""
    home = Checkout(tmp_path / "home")
    packed = command(home, "pack", *SMOKE, "--python", HERE, "--out", str(tmp_path / "job.pyz"))
    assert packed.returncode == 0, packed.stderr

    there = [sys.executable, str(tmp_path / "job.pyz"), "run", "--work", str(tmp_path / "work")]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    results = str(tmp_path / "results.kmb")
    first = subprocess.Popen([*there, "--out", results], env=environment, stderr=subprocess.DEVNULL)
    outputs = tmp_path / "work"
    deadline = time.monotonic() + 150
    while not list(outputs.glob("*/project/artifacts/profile/*/round0.json")):
        assert time.monotonic() < deadline and first.poll() is None, "the first task was never measured"
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not Path(results).exists()
    (measured,) = outputs.glob("*/project/artifacts/profile/*/round0.json")
    before = measured.stat().st_mtime_ns

    second = subprocess.run(
        [*there, "--out", results], env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert second.returncode == 0, second.stderr
    assert measured.stat().st_mtime_ns == before, "what was measured before the kill is not measured again"
    assert "2 tasks, 2 variants · 2 compiled, 2 verified, 2 measured" in second.stdout

    taken = command(home, "ingest", results)
    assert taken.returncode == 0, taken.stderr
    assert "made on " in taken.stdout and "another machine, bundle" in taken.stdout
    assert "runs: 2 new measured" in taken.stdout
    runs = runs_of(home)
    assert len(runs) == 2
    assert all(tags["origin"].endswith(")") and tags["bundle"] in taken.stdout for tags in runs.values())
    (page,) = home.folder.glob("artifacts/report/*/report.html")
    assert "another machine:" in page.read_text()

    again = command(home, "ingest", results)
    assert again.returncode == 0, again.stderr
    assert "nothing new, everything in it was here already" in again.stdout
    assert runs_of(home).keys() == runs.keys()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_fails_there_is_told_here(tmp_path: Path) -> None:
    """A kernel that does not compile is an outcome; a stage that crashes leaves its task out, by name."""
    there = Checkout(tmp_path / "there")
    with (there.folder / "kernels/softmax/softmax.cpp").open("a") as source:
        source.write("this is no C++\n")
    with (there.folder / "kernels/rms_norm/reference.py").open("a") as source:
        source.write("raise RuntimeError('a bug in the reference')\n")
    lines = ("experiment=smoke", "hardware=cpu", "kernel=softmax,rms_norm,matmul")
    ended = command(there, "run", *lines, "--out", str(tmp_path / "a.kmb"))
    assert ended.returncode == operations.UNFINISHED, ended.stderr
    assert "not done rms_norm x awkward x cpu x defaults: verify ended with code 1" in ended.stderr
    assert "a bug in the reference" in ended.stderr

    home = Checkout(tmp_path / "home")
    taken = command(home, "ingest", str(tmp_path / "a.kmb"), "--tracking", "disabled")
    assert taken.returncode == 0, taken.stderr
    assert "1 compile error" in taken.stdout and "tracking=disabled logs nothing" in taken.stdout
    (page,) = home.folder.glob("artifacts/report/*/report.html")
    assert "a bug in the reference" in page.read_text(), "the report lists the task among what was left out"
