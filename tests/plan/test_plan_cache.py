"""A plan is kept until anything that it was made from changes; then it is made again."""

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.backends.devices.device import FoundDevice
from pipeline.plan import local_machine, plan_cache
from pipeline.plan import planner as planning
from pipeline.plan.identity import tool_versions
from pipeline.plan.plan_cache import plan_of_jobs, spec_keys
from pipeline.records.layout import spec_path
from pipeline.records.planning.planned_tasks import Plan
from tests.plan.project import ROOT, Project

LINES = ("workload=small", "hardware=cpu")


class Counted:
    """Plans through the cache, and counts how often a plan is really made."""

    def __init__(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project = project
        self.made = 0
        real = planning.make_plan

        def make(*arguments: object, **keywords: object) -> object:
            self.made += 1
            return real(*arguments, **keywords)  # type: ignore[arg-type]

        monkeypatch.setattr(planning, "make_plan", make)

    def plan(self, *lines: str) -> Plan:
        """The plan, made or kept."""
        where = {"root": self.project.folder, "store": self.project.store}
        return plan_of_jobs((lines or LINES,), known=self.project.known(), **where)


@pytest.fixture
def counted(project: Project, monkeypatch: pytest.MonkeyPatch) -> Counted:
    """A project with a plan that was made once; somebody may edit the real code while the test runs."""
    project.write("pipeline/stage.py", "value = 1\n")
    monkeypatch.setattr(plan_cache, "code_folder", lambda: project.folder / "pipeline")
    counted = Counted(project, monkeypatch)
    counted.plan()
    assert counted.made == 1
    return counted


def test_nothing_changed(counted: Counted) -> None:
    """The second time the plan is read, and equal."""
    assert counted.plan() == counted.plan()
    assert counted.made == 1


def test_a_new_time_stamp_is_no_change(counted: Counted) -> None:
    """Contents are compared."""
    for path in (counted.project.folder / "conf").rglob("*.yaml"):
        path.touch()
    counted.plan()
    assert counted.made == 1


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("conf/workload/small.yaml", "tokens: 8", "tokens: 9"),
        pytest.param("conf/workload/large.yaml", "tokens: 64", "tokens: 65", marks=pytest.mark.slow),
        pytest.param("kernels/scale/scale.cpp", "return 0", "return 1", marks=pytest.mark.slow),
        ("kernels/common.hpp", "shared", "shaded"),
        ("pipeline/stage.py", "1", "2"),
    ],
)
def test_any_file_changed(counted: Counted, path: str, old: str, new: str) -> None:
    """Also a file of the same size, written within one tick of the file system's clock."""
    counted.project.edit(path, old, new)
    counted.plan()
    assert counted.made == 2


def test_a_new_option(counted: Counted) -> None:
    """A file more is a change too: an error's known names, a glob."""
    counted.project.write("conf/workload/new.yaml", "{}")
    counted.plan()
    assert counted.made == 2


def test_other_overrides_have_their_own_plan(counted: Counted) -> None:
    """Each list of overrides is kept for itself."""
    counted.plan("workload=large", "hardware=cpu")
    counted.plan()
    counted.plan("workload=large", "hardware=cpu")
    assert counted.made == 2


@pytest.mark.parametrize("change", ["edited", pytest.param("removed", marks=pytest.mark.slow)])
def test_a_spec_that_is_not_whole(counted: Counted, change: str) -> None:
    """A plan holds only together with all its files."""
    for stage, key in spec_keys(counted.plan()):
        path = spec_path(counted.project.store, stage, key)
        path.unlink() if change == "removed" else path.write_bytes(b"{}")
        counted.plan()
        assert path.read_bytes() != b"{}"
    assert counted.made == 7  # the first plan, then one per stage: generate to profile, mutate, aggregate


def test_the_machine_changed(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that appeared may make a task's device present."""
    here = local_machine.read_machine()
    other = local_machine.Machine(cpu=here.cpu, devices=(FoundDevice("cuda", "sm_90", "NVIDIA H200"),))
    monkeypatch.setattr(plan_cache, "read_machine", lambda: other)
    counted.plan()
    assert counted.made == 2


def test_a_tool_changed(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler is asked for its version each time."""
    from pipeline.backends.cpp import Cpp

    monkeypatch.setattr(Cpp, "toolchain", lambda *_: {"c++": "99"})
    counted.plan()
    assert counted.made == 2


def test_a_library_changed(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """So are the installed libraries."""
    real = tool_versions.version_of
    monkeypatch.setattr(tool_versions, "version_of", lambda name: "99" if name == "torch" else real(name))
    counted.plan()
    assert counted.made == 2


def test_what_reads_the_environment_is_not_kept(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpolation with a resolver can give another value next time."""
    monkeypatch.setenv("KERNELMILL_TEST_TOKENS", "5")
    value = "tokens: '${oc.decode:${oc.env:KERNELMILL_TEST_TOKENS}}'"
    counted.project.edit("conf/workload/small.yaml", "tokens: 8", value)
    assert counted.plan().tasks[0].row.dimensions["rows"] == 5
    monkeypatch.setenv("KERNELMILL_TEST_TOKENS", "6")
    assert counted.plan().tasks[0].row.dimensions["rows"] == 6


def test_a_job_elsewhere_uses_the_plan_of_its_run(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """On another machine the keys would be others: its jobs take the plan as it was made."""
    here = local_machine.read_machine()
    other = local_machine.Machine(cpu=here.cpu, devices=(FoundDevice("cuda", "sm_90", "NVIDIA H200"),))
    monkeypatch.setattr(plan_cache, "read_machine", lambda: other)
    where = {"root": counted.project.folder, "store": counted.project.store}
    plan_cache.plan_of_the_run((LINES,), **where)
    assert counted.made == 1
    plan_cache.plan_of_the_run((("hardware=cpu",),), **where)
    assert counted.made == 2, "where the run's plan is gone, a new one is better than none"


def test_a_broken_cache_is_made_again(counted: Counted) -> None:
    """A cut file is no plan."""
    (path,) = (counted.project.store / "plan" / "cache").glob("*.json")
    path.write_bytes(path.read_bytes()[:100])
    counted.plan()
    assert counted.made == 2


@pytest.mark.slow
def test_a_kept_plan_costs_little(tmp_path: Path) -> None:
    """Neither Hydra nor grimp nor the solver is imported where nothing changed."""
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from pipeline.plan.plan_cache import current_plan\n"
        "current_plan(('experiment=smoke',), root=Path.cwd(), store=Path(sys.argv[1]))\n"
        "heavy = ('hydra', 'omegaconf', 'grimp', 'numpy', 'torch')\n"
        "print(*(name for name in heavy if name in sys.modules))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    loaded = [
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(3)
    ]
    assert loaded[0] == ["hydra", "omegaconf", "grimp", "numpy"]
    assert [] in loaded[1:], "twice, in case that somebody edits the sources meanwhile"
