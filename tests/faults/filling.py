"""Disks that are full: the artifacts' or that of temporary files, at once or while the run goes on."""

import contextlib
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.faults.fault import Injected, Missed, Skipped, kind
from tests.faults.moments import MOMENTS
from tests.faults.scene import Scene

SIZE = 256 << 20  # bytes of the small disk; the tree takes some MB of it
LEFT = (0, 4096, 65536, 1 << 20, 4 << 20)
"""Bytes that are left free."""
BALLAST = "ballast"


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A disk of its own at this place, holding what is there."""
    if os.geteuid() != 0:
        raise Skipped("a disk of its own needs root")
    folder.mkdir(exist_ok=True)
    aside = folder.with_name(f"{folder.name}.aside")
    folder.rename(aside)
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        if mounted.returncode != 0:
            raise Skipped(f"a disk of its own cannot be mounted: {mounted.stderr.strip()}")
        subprocess.run(["cp", "-a", f"{aside}/.", str(folder)], check=True)
        yield
    finally:
        kept = folder.with_name(f"{folder.name}.kept")
        if mounted.returncode == 0:
            (folder / BALLAST).unlink(missing_ok=True)
            subprocess.run(["cp", "-a", str(folder), str(kept)], check=True)
            subprocess.run(["umount", "-l", str(folder)], check=True)
            subprocess.run(["rm", "-rf", str(aside)], check=True)
        else:
            aside.rename(kept)
        folder.rmdir()
        kept.rename(folder)


def fill(folder: Path, left: int) -> None:
    """Take all room but so many bytes."""
    state = os.statvfs(folder)
    room = state.f_bavail * state.f_frsize - left
    with (folder / BALLAST).open("wb") as stream, contextlib.suppress(OSError):
        while room > 0:
            room -= stream.write(bytes(min(room, 1 << 20)))
            stream.flush()


@kind("fill the disk of the artifacts")
def fill_artifacts(scene: Scene, numbers: random.Random) -> Injected:
    """Before the run, or in its middle."""
    return _filled(scene, numbers, scene.artifacts, at_once=0.5)


@kind("fill the temporary folder")
def fill_temporary(scene: Scene, numbers: random.Random) -> Injected:
    """$TMPDIR, where the warm worker listens and compilers write."""
    return _filled(scene, numbers, scene.temporary, at_once=0.6)


def _filled(scene: Scene, numbers: random.Random, folder: Path, *, at_once: float) -> Injected:
    """A small disk in place of a folder, full before the run with this probability, else in its middle."""
    moment = numbers.choice([each for each in MOMENTS if each.tree is not None])
    left = numbers.choice(LEFT)
    scene.end_all()
    scene.restore(moment.tree)
    with small_disk(folder):
        before = numbers.random() < at_once
        if before:
            fill(folder, left)
        run = scene.run()
        if not before and run.until(lambda: moment.seen(scene, run)):
            fill(folder, left)
        ended = run.end()
        scene.end_all()
    when = f"all up to {moment.tree} done" if before else f"when {moment.name}"
    return Injected(f"{left >> 10} KB left, {when}", ended)


@kind("no room for records")
def fill_project(scene: Scene, numbers: random.Random) -> Injected:
    """Where Snakemake keeps its own books."""
    tree = numbers.choice(("generate", "compile", "verify", "profile"))
    left = numbers.choice(LEFT)
    scene.end_all()
    scene.restore(tree)
    books = scene.folder / ".snakemake"
    if not books.is_dir():
        raise Missed("no .snakemake")
    with small_disk(books):
        fill(books, left)
        ended = scene.run().end()
        scene.end_all()
    return Injected(f".snakemake, {left >> 10} KB left, all up to {tree} done", ended)
