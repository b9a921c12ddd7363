"""Folders that may not be written: modes taken away from a root without its powers, or a read-only mount."""

import contextlib
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.faults.fault import Injected, Missed, Skipped, kind
from tests.faults.scene import Scene

TREES = ("plan", "generate", "compile", "verify", "profile", "aggregate", "track")


@contextlib.contextmanager
def as_anybody(scene: Scene) -> Iterator[None]:
    """Root sees no modes: its runs lose the powers by which it ignores them."""
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            raise Skipped("root ignores modes, and setpriv (util-linux) is not here")
        scene.wrapper = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--")
    scene.fresh_worker()
    try:
        yield
    finally:
        scene.wrapper = ()
        scene.fresh_worker()


def _deny(scene: Scene, numbers: random.Random, tree: str, pattern: str) -> Injected:
    """Take the right to write one folder that matches, for one run."""
    scene.end_all()
    scene.restore(tree)
    found = sorted(path for path in scene.artifacts.glob(pattern) if path.is_dir())
    if not found:
        raise Missed(f"no {pattern} in the tree of {tree}")
    folder = numbers.choice(found)
    mode = numbers.choice((0o555, 0o555, 0o000))
    before = folder.stat().st_mode & 0o7777
    with as_anybody(scene):
        folder.chmod(mode)
        try:
            ended = scene.run().end()
        finally:
            scene.end_all()
            folder.chmod(before)
    shown = "/".join(part if len(part) < 20 else "…" for part in folder.relative_to(scene.folder).parts)
    return Injected(f"{shown} has mode {mode:03o}, all up to {tree} done", ended)


@kind("no right to write artifacts/")
def deny_artifacts(scene: Scene, numbers: random.Random) -> Injected:
    """The store as a whole."""
    tree = numbers.choice(TREES)
    return _deny(scene, numbers, tree, "../artifacts")


@kind("no right to write a folder of a stage")
def deny_stage(scene: Scene, numbers: random.Random) -> Injected:
    """One of its outputs or of its part of the store."""
    tree = numbers.choice(TREES)
    return _deny(scene, numbers, tree, numbers.choice(("*", "store/*", "plan/*", "mlflow/*")))


@kind("no right to write an entry")
def deny_entry(scene: Scene, numbers: random.Random) -> Injected:
    """One folder of the store, its modes such that it cannot be read either, or not be replaced."""
    tree = numbers.choice(TREES[2:])
    return _deny(scene, numbers, tree, numbers.choice(("store/*/*", "store/*/*/*")))


@kind("a read-only mount")
def read_only_mount(scene: Scene, numbers: random.Random) -> Injected:
    """What a file system does after an error."""
    if os.geteuid() != 0:
        raise Skipped("a mount needs root")
    tree = numbers.choice(TREES)
    scene.end_all()
    scene.restore(tree)
    with read_only(scene.artifacts):
        ended = scene.run().end()
        scene.end_all()
    return Injected(f"artifacts/, all up to {tree} done", ended, must_fail=True)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A read-only view of a folder in its place."""
    bind = subprocess.run(
        ["mount", "--bind", str(folder), str(folder)], capture_output=True, text=True, check=False
    )
    if bind.returncode != 0:
        raise Skipped(f"a folder cannot be mounted over itself: {bind.stderr.strip()}")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
