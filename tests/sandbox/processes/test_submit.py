"""The warm worker runs a stage as `python -m pipeline.stages.<stage>` would."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.execution.workers.submit import SECRET as SECRET_OF_SUBMIT
from pipeline.execution.workers.submit import _environment as keys_of
from pipeline.records.environment import SECRET

CANARY = "sk-canary-5150"


def private() -> Iterator[dict[str, str]]:
    """Variables with a private and short folder for the worker's socket; the worker ends with it."""
    with tempfile.TemporaryDirectory(prefix="km-", ignore_cleanup_errors=True) as folder:
        yield {**os.environ, "TMPDIR": folder, "OPENAI_API_KEY": CANARY}


own_environment = pytest.fixture(private, name="own_environment")
"""For a test that starts a worker of its own, which imports torch."""
environment = pytest.fixture(private, name="environment", scope="module")
"""For all tests that one worker may serve."""


def submit(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one stage in the warm worker."""
    command = [sys.executable, "-m", "pipeline.execution.workers.submit", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_exit_code_and_output_come_back(environment: dict[str, str], tmp_path: Path) -> None:
    """An error of the stage is one line on stderr and exit code 1, from the first job and from a warm one."""
    missing = tmp_path / "missing.json"
    arguments = ("compile", "--spec", str(missing), "--variants", str(missing), "--out", str(missing))
    for _ in range(2):
        ended = submit(environment, *arguments)
        assert ended.returncode == 1
        assert ended.stderr.startswith(f"error: {missing}: cannot be read as CompileSpec")
        assert len(ended.stderr.splitlines()) == 1


def test_help_is_the_stages_own(environment: dict[str, str]) -> None:
    """Arguments reach the stage's own parser."""
    ended = submit(environment, "compile", "--help")
    assert ended.returncode == 0
    assert "--variants" in ended.stdout


def test_unknown_stage_fails(environment: dict[str, str]) -> None:
    """A stage that does not exist is a failure, not silence."""
    ended = submit(environment, "nonsense")
    assert ended.returncode == 1
    assert "nonsense" in ended.stderr


def test_without_a_stage() -> None:
    """The usage is told in one line."""
    ended = submit(dict(os.environ))
    assert ended.returncode == 2
    assert "usage" in ended.stderr


def open_when_read(fifo: Path) -> int:
    """Open the writing end once the stage has opened the other one."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            assert time.monotonic() < deadline, "the stage never opened its spec"
            time.sleep(0.01)


@pytest.mark.slow
def test_a_long_temporary_folder(own_environment: dict[str, str], tmp_path: Path) -> None:
    """The path of a Unix socket is limited, a temporary folder's is not."""
    long = tmp_path / ("x" * 100)
    long.mkdir()
    assert submit(own_environment | {"TMPDIR": str(long)}, "compile", "--help").returncode == 0


def test_killing_the_client_ends_the_job(environment: dict[str, str], tmp_path: Path) -> None:
    """A job does not outlive the one who wanted it, also after kill -9."""
    fifo = tmp_path / "spec.json"  # the stage blocks in reading its spec
    os.mkfifo(fifo)
    arguments = ["compile", "--spec", str(fifo), "--variants", str(fifo), "--out", str(tmp_path / "out")]
    client = subprocess.Popen(
        [sys.executable, "-m", "pipeline.execution.workers.submit", *arguments], env=environment
    )
    writer = open_when_read(fifo)
    client.send_signal(signal.SIGKILL)
    client.wait(timeout=10)
    with pytest.raises(BrokenPipeError):
        for _ in range(500):
            os.write(writer, b" ")
            time.sleep(0.01)
    os.close(writer)


@pytest.mark.slow
def test_begun_before_the_first_job(own_environment: dict[str, str]) -> None:
    """A run starts the worker once, however often it asks, and its first job waits for that one."""
    script = "from pipeline.execution.workers.submit import begin; print(begin() is None, begin() is None)"
    command = [sys.executable, "-c", script]
    begun = subprocess.run(command, env=own_environment, capture_output=True, text=True, check=True)
    assert begun.stdout.split() == ["False", "True"]
    assert sockets(own_environment) == 0  # it still imports
    assert submit(own_environment, "compile", "--help").returncode == 0
    assert sockets(own_environment) == 1
    begun = subprocess.run(command, env=own_environment, capture_output=True, text=True, check=True)
    assert begun.stdout.split() == ["True", "True"]


@pytest.mark.slow
def test_another_job_step_has_another_worker(own_environment: dict[str, str]) -> None:
    """Slurm ends what a step started when that ends: inside of an allocation each step has its own worker."""
    folder = Path(own_environment["TMPDIR"]) / f"kernelmill-{os.getuid()}"
    for job, step in (("7", "0"), ("7", "1"), ("8", "0")):
        submit(own_environment | {"SLURM_JOB_ID": job, "SLURM_STEP_ID": step}, "compile", "--help")
    assert len(list(folder.glob("*.sock"))) == 3


def test_in_a_job_of_a_cluster_there_is_no_worker(own_environment: dict[str, str], tmp_path: Path) -> None:
    """The stage runs in the job's own process, after a look at the machine."""
    missing = tmp_path / "missing.json"
    ended = submit(own_environment | {"KERNELMILL_ON_NODE": "1"}, "verify", "--spec", str(missing))
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"error: {missing}: cannot be read as VerifySpec")
    assert not list(Path(own_environment["TMPDIR"]).iterdir())


def test_keys_stay_with_the_stage_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only generate gets what ends with _API_KEY; what the shared store needs goes everywhere."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the store")
    asking, running = keys_of("generate"), keys_of("verify")
    assert asking["OPENAI_API_KEY"] == "sk-canary"
    assert "OPENAI_API_KEY" not in running
    assert "OPENAI_API_KEY" not in keys_of("")  # the zygote, from which every process of a kernel comes
    assert running["AWS_SECRET_ACCESS_KEY"] == "of the store"
    assert SECRET_OF_SUBMIT == SECRET


def test_the_worker_itself_has_no_key(environment: dict[str, str], tmp_path: Path) -> None:
    """Neither the zygote's own memory nor a job's environment holds the canary."""
    submit(environment, "compile", "--help")
    zygotes = [
        path
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if environment["TMPDIR"].encode() in readable(path) and b"zygote" in readable(path)
    ]
    assert zygotes
    for path in zygotes:
        assert CANARY.encode() not in readable(path.with_name("environ"))


def readable(path: Path) -> bytes:
    """Content of a file of /proc; nothing where the process has ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def sockets(environment: dict[str, str]) -> int:
    """How many zygotes listen: one, and its branches."""
    return len(list(Path(environment["TMPDIR"]).glob("kernelmill-*/*.sock")))


def spec_of(folder: Path, content: str) -> str:
    """As much of a spec of aggregate as is looked at."""
    path = folder / "spec.json"
    path.write_text(content)
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("tracked", ["true", "false"])
def test_the_last_stages_run_where_their_libraries_are(
    own_environment: dict[str, str], tmp_path: Path, tracked: str
) -> None:
    """A run begins a branch without waiting for it; that serves the first job, and the next one."""
    spec = spec_of(tmp_path, f'{{"tracking": {{"enabled": {tracked}}}}}')
    assert submit(own_environment, "--last", spec, "--begin").returncode == 0
    deadline = time.monotonic() + 60
    while sockets(own_environment) < 2:
        assert time.monotonic() < deadline, "no branch was grown"
        time.sleep(0.05)
    for _ in range(2):
        ended = submit(own_environment, "--last", spec, "report", "--help")
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "--tracked" in ended.stdout
        assert sockets(own_environment) == 2
    a_stage_tells_of_its_broken_spec_itself(own_environment, tmp_path)


def a_stage_tells_of_its_broken_spec_itself(environment: dict[str, str], tmp_path: Path) -> None:
    """Not the client, which only wants to know whether MLflow is needed."""
    spec = spec_of(tmp_path, "no JSON")
    arguments = ("--spec", spec, "--aggregate", str(tmp_path), "--out", str(tmp_path / "page.html"))
    ended = submit(environment, "--last", spec, "report", *arguments)
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"error: {spec}: cannot be read as AggregateSpec")


@pytest.mark.slow
def test_without_a_branch_the_worker_itself_serves(own_environment: dict[str, str], tmp_path: Path) -> None:
    """What cannot be imported ahead costs time, and is not the job's failure."""
    (tmp_path / "mlflow.py").write_text("raise RuntimeError('broken')")
    spec = spec_of(tmp_path, '{"tracking": {"enabled": true}}')
    broken = own_environment | {"PYTHONPATH": f"{tmp_path}:{Path.cwd()}"}
    ended = submit(broken, "--last", spec, "report", "--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert sockets(own_environment) == 1


@pytest.mark.slow
def test_what_the_last_stages_import_is_imported_ahead(tmp_path: Path) -> None:
    """A client of a fresh database loads no module of MLflow that was not there."""
    program = f"""
import sys
from pathlib import Path
from pipeline.records.configuration.stage_settings import Tracking
from pipeline.stages import track
track.prepare()
before = set(sys.modules)
from pipeline.track.stores.mlflow_store import open_store
settings = Tracking(name="t", description="", enabled=True, uri="embedded", experiment="t")
open_store(settings, Path({str(tmp_path)!r})).client.search_experiments()
print([name for name in set(sys.modules) - before if name.startswith("mlflow.") and ".db." not in name])
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"
