"""Too few processes, too few open files: for one run."""

import os
import random
import shutil

from tests.faults.fault import Injected, Skipped, kind
from tests.faults.scene import Scene

TREES = (None, "generate", "compile", "verify", "profile", "aggregate")
NOBODY = 65534
POWERS = "+dac_override,+dac_read_search,+chown,+fowner"


def _limited(scene: Scene, numbers: random.Random, wrapper: tuple[str, ...], shown: str) -> Injected:
    tree = numbers.choice(TREES)
    scene.end_all()
    scene.restore(tree)
    scene.wrapper = wrapper
    try:
        ended = scene.run().end()
    finally:
        scene.wrapper = ()
        scene.end_all()
    return Injected(f"{shown}, all up to {tree or 'nothing'} done", ended)


@kind("few open files")
def few_files(scene: Scene, numbers: random.Random) -> Injected:
    """ulimit -n."""
    limit = numbers.choice((24, 32, 48, 64, 96, 128))
    return _limited(scene, numbers, ("prlimit", f"--nofile={limit}:{limit}", "--"), f"{limit} at most")


@kind("few processes")
def few_processes(scene: Scene, numbers: random.Random) -> Injected:
    """ulimit -u, which root is free of: as another user who may read and write what root may."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        raise Skipped("the limit counts all of a user's processes: it takes root to be a user that has none")
    limit = numbers.choice((6, 8, 12, 16, 20, 24, 32))
    become = (
        "setpriv",
        f"--reuid={NOBODY}",
        "--clear-groups",
        "--inh-caps",
        POWERS,
        "--ambient-caps",
        POWERS,
    )
    return _limited(
        scene, numbers, (*become, "prlimit", f"--nproc={limit}:{limit}", "--"), f"{limit} at most"
    )
