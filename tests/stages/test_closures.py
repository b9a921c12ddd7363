"""What results depend on: the code behind each stage, held against the rooms that its row in STAGES names."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.plan.identity.import_closure import Code
from pipeline.plan.identity.stage_builds import PRUNING, REPLAY, device_modules
from pipeline.stages.table import STAGES
from tests.paths import ROOT

BACKENDS = {"cpp": "cpu", "cuda": "cuda", "triton": "cuda"}
"""Backend -> the kind of device that its tasks run on here."""
KEPT = ("compile", "verify", "profile")
"""Stages whose results are kept: binaries, verdicts, measurements."""
Keys = dict[tuple[str, str], str]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code whose modules may be edited."""
    folder = tmp_path_factory.mktemp("closures")
    shutil.copytree(ROOT / "pipeline", folder / "pipeline", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def before(checkout: Path) -> Keys:
    """The keys of the code as it is."""
    return keys(checkout)


@pytest.fixture
def edit(checkout: Path) -> Iterator[Callable[[str], None]]:
    """Change every module below a folder of pipeline/, until the test ends."""
    edited: dict[Path, bytes] = {}

    def change(folder: str) -> None:
        path = checkout / "pipeline" / folder
        for module in path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]:
            edited[module] = module.read_bytes()
            module.write_bytes(edited[module] + b"\nEDITED = True\n")

    yield change
    for module, content in edited.items():
        module.write_bytes(content)


def keys(folder: Path) -> Keys:
    """The digest of the code behind each stage that keeps results, for each backend."""
    code = Code(folder)
    return {
        (stage, name): code.digest(
            f"pipeline.stages.{stage}", f"pipeline.backends.{name}", *device_modules(stage, kind)
        )
        for stage in KEPT
        for name, kind in BACKENDS.items()
    }


def stages_that_changed(before: Keys, after: Keys) -> list[str]:
    """Stages of which the key of any backend is another one."""
    return list(dict.fromkeys(stage for (stage, name), key in after.items() if key != before[stage, name]))


@pytest.mark.parametrize("stage", STAGES)
def test_rooms_of_a_stage(stage: str) -> None:
    """Its results depend on the rooms in its row, and on no other."""
    own = f"pipeline.stages.{STAGES[stage].program}"
    modules = Code(ROOT).closure(own)
    rooms = {module.split(".")[1] for module in modules if module.count(".")}
    assert rooms - {"stages"} <= STAGES[stage].rooms
    assert [each for each in modules if each.startswith("pipeline.stages.")] == [own]


NO_RESULTS = ("cli", "execution", "plan", "report", "track", "ship", "interop", "search")


def test_results_stay_valid_whatever_is_edited(
    checkout: Path, before: Keys, edit: Callable[[str], None]
) -> None:
    """Editing every module of the rooms that compute no results leaves binaries, verdicts, measurements."""
    for room in NO_RESULTS:
        if (checkout / "pipeline" / room).is_dir():
            edit(room)
    assert stages_that_changed(before, keys(checkout)) == []


@pytest.mark.slow
@pytest.mark.parametrize("room", NO_RESULTS)
def test_results_stay_valid(checkout: Path, before: Keys, edit: Callable[[str], None], room: str) -> None:
    """Room by room, so that a failure names it."""
    if not (checkout / "pipeline" / room).is_dir():
        pytest.skip(f"there is no room {room} yet")
    edit(room)
    assert stages_that_changed(before, keys(checkout)) == []


@pytest.mark.parametrize(
    ("room", "changed"),
    [
        ("verify", ["verify"]),
        ("measure", ["profile"]),
        ("stages/profile", ["profile"]),
        ("backends/devices/device", ["verify", "profile"]),
        ("backends/devices/cpu/detection", ["verify", "profile"]),
        ("backends/devices/cpu/ceilings", ["profile"]),
        ("backends/devices/cuda/timer", ["profile"]),
        ("backends/devices/hip", []),
        ("records", list(KEPT)),
    ],
)
def test_results_of_edited_code_are_made_again(
    checkout: Path, before: Keys, edit: Callable[[str], None], room: str, changed: list[str]
) -> None:
    """What computes a result is part of its key."""
    edit(room)
    assert stages_that_changed(before, keys(checkout)) == changed


def test_other_backends_stay_valid(checkout: Path, before: Keys, edit: Callable[[str], None]) -> None:
    """A binary depends on its own backend."""
    edit("backends/triton/compilation")
    after = keys(checkout)
    assert after["compile", "triton"] != before["compile", "triton"]
    assert [after["compile", name] for name in ("cpp", "cuda")] == [
        before["compile", name] for name in ("cpp", "cuda")
    ]


def test_code_that_only_some_tasks_run() -> None:
    """Replay and pruning belong to the tasks that use them; `stages.optional` imports nothing else."""
    source = (ROOT / "pipeline" / "stages" / "optional.py").read_text()
    imported = {line.split()[1] for line in source.splitlines() if line.startswith("    from pipeline.")}
    assert imported == {REPLAY, PRUNING}
