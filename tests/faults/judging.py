"""The judge of a fault: the run that met it, the next run, and what is left, beside an undisturbed run.

In: a fault of a kind and a seed. Out: a Result, with every promise that was not kept.
"""

import difflib
import json
import random
import re
import time
from typing import Any, NamedTuple

from tests.faults.fault import Injected, Kind
from tests.faults.scene import Scene
from tests.faults.state import aggregate_key, measurements, state_of

PATIENCE = (
    8.0  # seconds for what was killed to be gone: supervisors notice at once, Snakemake may finish a job
)
TEMPORARY = (re.compile(r"kernelmill-\d+$"), re.compile(r"kernelmill-locks$"), re.compile(r"snakemake\w{8}$"))
"""What may lie in the folder for temporary files: the warm worker's socket and log, the devices' locks,
and what a killed Snakemake leaves of its own."""
HALF_MADE = re.compile(r"^\..*\.[0-9a-f]{8}\.\d+-")


class Result(NamedTuple):
    """What came of one fault."""

    kind: str
    seed: int
    where: str
    code: int | None
    said: str
    next: str
    problems: tuple[str, ...]
    seconds: float


class Judge:
    """Knows what an undisturbed run leaves."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._aggregate = aggregate_key(scene.artifacts)
        self._undisturbed = state_of(scene.artifacts, self._aggregate)

    def try_fault(self, name: str, kind: Kind, seed: int) -> Result:
        """Put one fault in and see what comes of it."""
        started = time.monotonic()
        scene = self._scene
        scene.tidy()
        injected = kind(scene, random.Random(f"{name} {seed}"))
        problems = [*self._met(injected), *self._still_running()]
        measured = measurements(scene.artifacts)
        next_run = scene.run_undisturbed()
        if next_run.code != 0:
            problems.append(f"the next run ended with {next_run.code}: {next_run.said}")
        else:
            problems += self._differences()
        problems += self._lost(measured, injected)
        problems += self._left_behind()
        ended = injected.ended
        again = [line for line in next_run.output.splitlines() if "damaged" in line]
        said = (again[0] if again else "") if ended is None else ended.said
        return Result(
            kind=name,
            seed=seed,
            where=injected.where,
            code=None if ended is None else ended.code,
            said=said.replace(str(scene.folder), "…").replace(str(scene.base), "…"),
            next=_done(next_run.output) if next_run.code == 0 else "failed",
            problems=tuple(problems),
            seconds=time.monotonic() - started,
        )

    def _met(self, injected: Injected) -> list[str]:
        """What the user of the disturbed run saw."""
        ended = injected.ended
        if ended is None:
            return []
        problems = []
        if ended.code == 124:
            problems.append("the disturbed run did not end")
        if ended.traceback is not None:
            problems.append(f"a traceback was shown: {ended.traceback}")
        if injected.must_fail and ended.code == 0:
            problems.append("the disturbed run ended with 0")
        if ended.code == 0 and not self._is_done():
            problems.append("the disturbed run ended with 0 and left something undone")
        return problems

    def _is_done(self) -> bool:
        return (self._scene.artifacts / "report" / self._aggregate / "report.html").is_file()

    def _still_running(self) -> list[str]:
        """Nothing but the idle warm worker may outlive the run."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            left = [member for member in self._scene.members() if member.role != "zygote"]
            if not left:
                return []
            time.sleep(0.1)
        roles = ", ".join(member.role for member in left)
        self._scene.end_all()
        return [f"still running {PATIENCE:.0f} s after the run: {roles}"]

    def _differences(self) -> list[str]:
        try:
            found = state_of(self._scene.artifacts, self._aggregate)
        except Exception as error:
            return [f"what the next run left cannot be read: {type(error).__name__}: {error}"]
        return [
            f"{part} differs from an undisturbed run: {_first_difference(expected, found[part])}"
            for part, expected in self._undisturbed.items()
            if found[part] != expected
        ]

    def _lost(self, measured: dict[str, str], injected: Injected) -> list[str]:
        """Finished measurements keep their samples."""
        after = measurements(self._scene.artifacts)
        lost = [entry for entry, digest in measured.items() if after.get(entry) != digest]
        return [f"{len(lost)} finished measurements were lost"] if lost and not injected.spoiled else []

    def _left_behind(self) -> list[str]:
        scene = self._scene
        half = [path for path in scene.artifacts.rglob(".*") if HALF_MADE.match(path.name)]
        strange = [
            path.name
            for path in scene.temporary.iterdir()
            if not any(each.match(path.name) for each in TEMPORARY)
        ]
        problems = [f"half-made things stayed: {', '.join(path.name for path in half)}"] if half else []
        return problems + ([f"temporary files stayed: {', '.join(sorted(strange))}"] if strange else [])


def _done(output: str) -> str:
    """What the next run did, in words."""
    if "Nothing to be done" in output:
        return "nothing to do"
    stages = ("generate", "compile", "verify", "profile", "aggregate", "track", "report")
    ran = [stage for stage in stages if re.search(rf"^{stage} ", output, re.MULTILINE)]
    return f"ran {', '.join(ran)}" if ran else "completed"


def _first_difference(expected: Any, found: Any) -> str:
    lines = [json.dumps(value, indent=1, sort_keys=True).splitlines() for value in (expected, found)]
    changed = [line for line in difflib.unified_diff(*lines, n=0, lineterm="") if line[:1] in "+-"]
    return " ".join(line.replace(" ", "") for line in changed[2:8])[:300]
