"""MLflow's database: absent, damaged, or locked by another process."""

import contextlib
import random
import sqlite3
import threading
import time
from pathlib import Path

from tests.faults.fault import Injected, Missed, kind
from tests.faults.moments import begin
from tests.faults.scene import Scene

HELD = 600.0  # seconds: longer than any run


def _path(scene: Scene) -> Path:
    return scene.artifacts / "mlflow" / "mlflow.db"


@kind("the database is gone")
def absent(scene: Scene, numbers: random.Random) -> Injected:
    """All was logged, and somebody removed it."""
    tree = numbers.choice(("track", "report"))
    scene.restore(tree)
    for path in _path(scene).parent.glob("mlflow.db*"):
        path.unlink()
    return Injected(f"all up to {tree} done", None)


@kind("the database is damaged")
def damaged(scene: Scene, numbers: random.Random) -> Injected:
    """Cut, emptied, or its beginning overwritten."""
    tree = numbers.choice(("track", "report"))
    scene.restore(tree)
    path = _path(scene)
    content = path.read_bytes()
    manner = numbers.choice(("truncated", "truncated", "empty", "overwritten"))
    if manner == "truncated":
        path.write_bytes(content[: numbers.randrange(len(content))])
    elif manner == "empty":
        path.write_bytes(b"")
    else:
        at = numbers.randrange(0, 100)
        path.write_bytes(content[:at] + numbers.randbytes(4096) + content[at + 4096 :])
    for suffix in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).unlink()
    return Injected(f"{manner}, all up to {tree} done", None)


@kind("the database is locked for a while")
def locked_for_a_while(scene: Scene, numbers: random.Random) -> Injected:
    """Another process writes in a long transaction."""
    seconds = numbers.uniform(0.5, 6.0)
    tree = "track" if numbers.random() < 0.3 else "aggregate"
    return _locked(scene, tree, seconds, f"{seconds:.1f} s")


@kind("the database is locked for good")
def locked_for_good(scene: Scene, numbers: random.Random) -> Injected:
    """Another process does not end."""
    tree = "track" if numbers.random() < 0.3 else "aggregate"
    return _locked(scene, tree, HELD, "until the run ended")._replace(must_fail=True)


def _locked(scene: Scene, tree: str, seconds: float, shown: str) -> Injected:
    """Hold the exclusive lock from the start of a run that has to log."""
    scene.restore(tree)
    path = _path(scene)
    if tree == "track" or not path.is_file():
        scene.restore("track")
        for name in ("track", "report"):
            for output in scene.artifacts.glob(f"{name}/*/*"):
                output.unlink()
    free = threading.Event()

    def hold() -> None:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.isolation_level = None
            connection.execute("BEGIN EXCLUSIVE")
            held.set()
            free.wait(seconds)
            connection.execute("ROLLBACK")

    held = threading.Event()
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10.0)
    try:
        ended = scene.run().end()
    finally:
        free.set()
        holder.join()
    return Injected(f"{shown}, all up to {tree} done", ended)


@kind("a kill while MLflow logs")
def killed_while_logging(scene: Scene, numbers: random.Random) -> Injected:
    """Everything at once, in the middle of runs, of the sweep, of models."""
    only = ("the database appears", "a run's artifacts are written", "what was tracked is being written")
    when, run = begin(scene, numbers, only=only)
    time.sleep(numbers.uniform(0.0, 1.0))
    if not run.goes_on:
        raise Missed("it had ended")
    scene.end_all()
    return Injected(f"SIGKILL {when}", run.end(), must_fail=True)
