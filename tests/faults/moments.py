"""When a fault hits: after a random time, or when something is seen, so that short moments are hit as well.

In: a run and a random generator. Out: the name of the moment, once it has come.
"""

import random
import re
import time
from collections.abc import Callable
from typing import NamedTuple

from tests.faults.fault import Missed
from tests.faults.scene import Run, Scene


class Moment(NamedTuple):
    """What is waited for, and from which prepared tree that is soon."""

    name: str
    tree: str | None
    seen: Callable[[Scene, Run], bool]


def _path(pattern: str) -> Callable[[Scene, Run], bool]:
    """A file or folder appears that was not there when it was first looked for."""
    before: dict[int, set[str]] = {}

    def seen(scene: Scene, run: Run) -> bool:
        found = {str(path) for path in scene.artifacts.glob(pattern)}
        return bool(found - before.setdefault(id(run), found))

    return seen


def _line(pattern: str) -> Callable[[Scene, Run], bool]:
    return lambda scene, run: re.search(pattern, run.output, re.MULTILINE) is not None


def _role(role: str) -> Callable[[Scene, Run], bool]:
    return lambda scene, run: any(member.role == role for member in scene.members())


MOMENTS = (
    Moment("the lock is taken", None, _path(".lock")),
    Moment("a spec is being written", None, _path("plan/*/.*")),
    Moment("the plan is being kept", None, _path("plan/cache/*")),
    Moment("the warm worker starts", None, _role("zygote")),
    Moment("variants are proposed", "plan", _path("generate/*/*")),
    Moment("an entry of compile is being made", "generate", _path("store/compile/*/.*")),
    Moment("a compiler runs", "generate", _role("tool")),
    Moment("an entry of compile is whole", "generate", _path("store/compile/*/*")),
    Moment("the output of compile is being written", "generate", _path("compile/*/*")),
    Moment("an entry of verify is being made", "compile", _path("store/verify/*/.*")),
    Moment("a candidate runs", "compile", _role("child")),
    Moment("the output of verify is being written", "compile", _path("verify/*/*")),
    Moment("an entry of profile is being made", "verify", _path("store/profile/*/.*")),
    Moment("an entry of profile is whole", "verify", _path("store/profile/*/*")),
    Moment("a callable is being measured", "verify", _role("child")),
    Moment("the output of profile is being written", "verify", _path("profile/*/*")),
    Moment("a table is being written", "profile", _path("aggregate/*/*")),
    Moment("the database appears", "aggregate", _path("mlflow/*")),
    Moment("a run's artifacts are written", "aggregate", _path("mlflow/artifacts/*/*")),
    Moment("what was tracked is being written", "aggregate", _path("track/*/*")),
    Moment("the report is being written", "track", _path("report/*/*")),
    Moment("the report joins the sweep", "track", _line(r"^report small")),
)


def begin(scene: Scene, numbers: random.Random, *, only: tuple[str, ...] = ()) -> tuple[str, Run]:
    """Start a run and wait for its moment; the moment's name and the run, which goes on.

    Raises
    ------
    Missed
        The run ended first.
    """
    moments = [moment for moment in MOMENTS if not only or moment.name in only]
    if not only and numbers.random() < 0.3:
        return _after_a_while(scene, numbers)
    moment = numbers.choice(moments)
    scene.restore(moment.tree)
    run = scene.run()
    if not run.until(lambda: moment.seen(scene, run)):
        run.end()
        raise Missed(moment.name)
    extra = numbers.choice((0.0, 0.0, numbers.uniform(0.0, 0.02), numbers.uniform(0.0, 0.3)))
    time.sleep(extra)
    if not run.goes_on:
        raise Missed(moment.name)
    return f"when {moment.name}, {extra * 1000:.0f} ms later", run


def _after_a_while(scene: Scene, numbers: random.Random) -> tuple[str, Run]:
    scene.restore(None)
    run = scene.run()
    seconds = numbers.uniform(0.0, scene.seconds)
    if run.until(lambda: False, seconds) or not run.goes_on:
        raise Missed(f"after {seconds:.1f} s")
    return f"after {seconds:.1f} s", run
