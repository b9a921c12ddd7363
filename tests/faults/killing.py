"""Processes that are killed, asked to end, or stopped for a while."""

import random
import signal
import time

from tests.faults.fault import Injected, Missed, kind
from tests.faults.moments import begin
from tests.faults.processes import send
from tests.faults.scene import Run, Scene

WORKERS = ("fork server", "child supervisor", "child", "grandchild")
WORKING = (
    "a compiler runs",
    "an entry of compile is being made",
    "a candidate runs",
    "an entry of verify is being made",
    "a callable is being measured",
    "an entry of profile is being made",
)
JOBS = (*WORKING, "a table is being written", "a run's artifacts are written", "the report is being written")


def _hit(
    scene: Scene, numbers: random.Random, roles: tuple[str, ...], signals: tuple[signal.Signals, ...]
) -> str:
    """Signal one process that has one of these roles."""
    found = [member for member in scene.members() if member.role in roles]
    numbers.shuffle(found)
    for member in found:
        number = numbers.choice(signals)
        if send(member.pid, number):
            return f"{number.name} to a {member.role}"
    raise Missed(f"no {' or '.join(roles)} was there")


def _one(scene: Scene, numbers: random.Random, roles: tuple[str, ...], only: tuple[str, ...]) -> Injected:
    when, run = begin(scene, numbers, only=only)
    try:
        what = _hit(scene, numbers, roles, (signal.SIGKILL,))
    except Missed:
        run.end()
        raise
    return Injected(f"{what} {when}", run.end())


@kind("kill a worker")
def kill_a_worker(scene: Scene, numbers: random.Random) -> Injected:
    """A compiling, judged or measuring process, or what supervises it."""
    return _one(scene, numbers, WORKERS, WORKING)


@kind("kill a compiler")
def kill_a_compiler(scene: Scene, numbers: random.Random) -> Injected:
    """What a compiling process started."""
    return _one(scene, numbers, ("tool",), ("a compiler runs",))


@kind("kill a stage")
def kill_a_stage(scene: Scene, numbers: random.Random) -> Injected:
    """The process of a job, or what supervises it."""
    return _one(scene, numbers, ("job", "job supervisor"), JOBS)


@kind("kill the warm worker")
def kill_the_warm_worker(scene: Scene, numbers: random.Random) -> Injected:
    """The process that all jobs are forked from."""
    return _one(scene, numbers, ("zygote",), (*JOBS, "the warm worker starts"))


@kind("kill a client")
def kill_a_client(scene: Scene, numbers: random.Random) -> Injected:
    """What sends a job to the warm worker, or the shell that it runs in."""
    return _one(scene, numbers, ("submit", "shell"), JOBS)


@kind("kill Snakemake")
def kill_snakemake(scene: Scene, numbers: random.Random) -> Injected:
    """It alone, without what it started."""
    when, run = begin(scene, numbers)
    send(run.process.pid, signal.SIGKILL)
    return Injected(f"SIGKILL {when}", run.end(), must_fail=True)


@kind("kill all processes")
def kill_all_processes(scene: Scene, numbers: random.Random) -> Injected:
    """As when the machine goes down: no handler runs anywhere."""
    when, run = begin(scene, numbers)
    scene.end_all()
    return Injected(f"SIGKILL {when}", run.end(), must_fail=True)


@kind("terminate Snakemake")
def terminate_snakemake(scene: Scene, numbers: random.Random) -> Injected:
    """As a scheduler does; it may finish what runs."""
    return _asked(scene, numbers, signal.SIGTERM)


@kind("interrupt Snakemake")
def interrupt_snakemake(scene: Scene, numbers: random.Random) -> Injected:
    """Ctrl-C: the signal reaches the whole process group of the terminal."""
    return _asked(scene, numbers, signal.SIGINT)


def _asked(scene: Scene, numbers: random.Random, number: signal.Signals) -> Injected:
    when, run = begin(scene, numbers)
    if number is signal.SIGINT:
        for member in scene.members():
            if member.role in ("snakemake", "submit", "shell", "tee"):
                send(member.pid, number)
    else:
        send(run.process.pid, number)
    return Injected(f"{number.name} {when}", run.end())


@kind("stop a worker for a while")
def stop_a_worker(scene: Scene, numbers: random.Random) -> Injected:
    """As a suspended machine or a debugger does; it goes on later."""
    when, run = begin(scene, numbers, only=WORKING)
    seconds = numbers.uniform(0.2, 3.0)
    roles = (*WORKERS, "job", "job supervisor")
    found = [member for member in scene.members() if member.role in roles]
    if not found:
        run.end()
        raise Missed("no worker was there")
    member = numbers.choice(found)
    send(member.pid, signal.SIGSTOP)
    _wait(run, seconds)
    send(member.pid, signal.SIGCONT)
    return Injected(f"{seconds:.1f} s, a {member.role} {when}", run.end())


def _wait(run: Run, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and run.goes_on:
        time.sleep(0.01)
