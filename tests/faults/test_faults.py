"""A short version of `python -m tests.faults`: a fault of each class."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.fault import Missed, Skipped, load_kinds
from tests.faults.judging import Judge
from tests.faults.scene import Scene

FAULTS = (
    "kill all processes",
    "fill the disk of the artifacts",
    "two sweeps in one checkout",
    "corrupt an output",
    "a read-only mount",
)
# Each takes about ten seconds, minutes on a busy machine; `make faults` has those that are not here.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
TRIES = 5  # seeds until one hits before the run has ended
FIRST = {"corrupt an output": 108}
"""The first seed of a fault, else 100; that one spoils what profile wrote, after which least is made anew."""


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """A prepared copy of the project."""
    scene = Scene(tmp_path_factory.mktemp("f"))
    scene.prepare()
    yield Judge(scene)
    scene.end_all()


@pytest.mark.parametrize("name", FAULTS)
def test_the_next_run_completes(judge: Judge, name: str) -> None:
    """As an undisturbed one, and no finished measurement is lost."""
    first = FIRST.get(name, 100)
    for seed in range(first, first + TRIES):
        try:
            found = judge.try_fault(name, load_kinds()[name], seed)
        except Skipped as reason:
            pytest.skip(str(reason))
        except Missed:
            continue
        assert not found.problems, f"seed {seed}, {found.where}: {found.problems}"
        return
    pytest.fail(f"{TRIES} runs in turn ended before the fault")


def test_the_judge_sees_what_is_wrong(judge: Judge, tmp_path: Path) -> None:
    """A measurement that was taken anew, a run left open, a half-made file: none of them passes."""
    from tests.faults.fault import Injected

    def forget(scene: Scene, numbers: object) -> Injected:
        scene.restore("report")
        (folder,) = list(scene.artifacts.glob("store/profile/*/*"))[:1]
        (folder / "rounds.json").write_text("[]")
        for path in scene.artifacts.glob("profile/*/round*"):
            path.unlink()
        (scene.artifacts / ".half.json.01234567.1-abc").write_text("")
        (scene.temporary / "stray").write_text("")
        return Injected("on purpose", None)

    measured = {}

    def watch(scene: Scene, numbers: object) -> Injected:
        scene.restore("report")
        measured.update(
            {path: path.read_bytes() for path in scene.artifacts.glob("store/profile/*/*/rounds.json")}
        )
        return Injected("nothing", None)

    assert judge.try_fault("nothing", watch, 0).problems == ()
    problems = judge.try_fault("on purpose", forget, 0).problems
    assert any("half-made" in problem for problem in problems)
    assert any("stray" in problem for problem in problems)
