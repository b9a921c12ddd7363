"""Two sweeps at once: in one checkout, and in two checkouts on one store."""

import random
import shutil
import time

from tests.end_to_end.checkout import Checkout
from tests.faults.fault import Injected, kind
from tests.faults.processes import send
from tests.faults.scene import GROUPS, MARK, SMALL, Ended, Run, Scene

TREES = (None, "generate", "compile", "verify", "profile", "aggregate", "track")


@kind("two sweeps in one checkout")
def one_checkout(scene: Scene, numbers: random.Random) -> Injected:
    """The second waits for the first; sometimes the first is killed meanwhile."""
    tree = numbers.choice(TREES)
    scene.restore(tree)
    first = scene.run()
    time.sleep(numbers.uniform(0.0, 1.5))
    second = scene.run()
    what = "both to their end"
    if numbers.random() < 0.4:
        time.sleep(numbers.uniform(0.0, 3.0))
        send(first.process.pid, 9)
        what = "the first killed"
    ends = [first.end(), second.end()]
    return Injected(
        f"{what}, all up to {tree or 'nothing'} done", _worse(ends[1:] if "killed" in what else ends)
    )


@kind("two checkouts on one store")
def two_checkouts(scene: Scene, numbers: random.Random) -> Injected:
    """The second one's artifacts/ is a link to the first one's."""
    tree = numbers.choice(TREES)
    scene.restore(tree)
    other = scene.base / "q"
    shutil.rmtree(other, ignore_errors=True)
    checkout = Checkout(other)
    for group in GROUPS:
        shutil.copy(SMALL / f"{group}.yaml", other / "conf" / group / "small.yaml")
    (other / "artifacts").rmdir()
    (other / "artifacts").symlink_to(scene.artifacts)
    environment = checkout.environment | {MARK: scene.mark, "TMPDIR": str(scene.temporary)}
    first = scene.run()
    time.sleep(numbers.uniform(0.0, 1.0))
    second = Run(scene.command(), other, environment, scene.longest)
    ends = [first.end(), second.end()]
    return Injected(f"both to their end, all up to {tree or 'nothing'} done", _worse(ends))


def _worse(ends: list[Ended]) -> Ended:
    """Both must end well: what is shown is the one that did not."""
    return max(ends, key=lambda ended: (ended.code != 0, "waiting" in ended.output))
