"""The specs of mutate: one per implementation, whatever the tasks; explanations of survivors."""

import subprocess
from pathlib import Path

import pytest
import yaml

from pipeline.backends.registry import backend
from pipeline.plan.config.compose import composer
from pipeline.plan.config.groups import options
from pipeline.plan.tasks.stage_specs import SURVIVORS, explanations
from pipeline.records.configuration.kernel import Kernel
from pipeline.records.errors import ConfigError
from pipeline.records.layout import spec_path
from pipeline.records.planning.specs import AggregateSpec, MutateSpec
from pipeline.records.record import from_plain, read_record
from pipeline.verify.mutation.mutant_generation import find_mutants
from tests.paths import ROOT
from tests.plan.project import Project


def test_one_spec_per_implementation(project: Project) -> None:
    """Two workloads are two tasks of one spec; two absent GPUs are interpreted alike."""
    plan = project.plan()
    assert [(each.kernel, each.implementation) for each in plan.mutations] == [
        ("scale", "cpp"),
        ("scale", "triton"),
    ]
    cpp, triton = (
        read_record(spec_path(project.store, "mutate", each.key), MutateSpec) for each in plan.mutations
    )
    assert len(cpp.tasks) == 2
    assert len(triton.tasks) == 1
    assert [preset.name for preset in cpp.presets] == ["standard", "fast"]
    assert len(cpp.tasks[0].space.tunables["UNROLL"].values) > 1
    assert cpp.tasks[0].verify.parent == ""


def test_the_report_waits_only_where_it_is_asked_to(project: Project) -> None:
    """A score costs minutes, so that most experiments leave it to its own target."""
    for line, reported in (("mutation.report=false", False), ("mutation.report=true", True)):
        plan = project.plan(line)
        assert {each.reported for each in plan.mutations} == {reported}
        spec = read_record(spec_path(project.store, "aggregate", plan.aggregate), AggregateSpec)
        assert bool(spec.mutations) is reported


def test_the_report_does_not_change_the_score(project: Project) -> None:
    """Nor do the preset's name and description."""
    keys = [
        tuple(each.key for each in project.plan(f"mutation.report={value}").mutations)
        for value in ("true", "false")
    ]
    assert keys[0] == keys[1]


def test_an_unknown_preset(project: Project) -> None:
    """One line, with the file and the known names."""
    with pytest.raises(
        ConfigError,
        match=r"conf/mutation/standard.yaml: presets: unknown verify 'fats'; did you mean 'fast'\? \(known: ",
    ):
        project.plan("mutation.presets=[fats]")


def test_explanations_of_the_folder_and_above(tmp_path: Path) -> None:
    """What stands beside the source wins; line breaks are spaces."""
    folder = Path("kernels/a")
    (tmp_path / folder).mkdir(parents=True)
    assert explanations(folder, tmp_path) == {}
    (tmp_path / "kernels" / SURVIVORS).write_text("x: above\ny: |\n  two\n  lines\n")
    (tmp_path / "kernels" / "a" / SURVIVORS).write_text("x: beside\n")
    assert explanations(folder, tmp_path) == {"x": "beside", "y": "two lines"}
    (tmp_path / "kernels" / "a" / SURVIVORS).write_text("- x\n")
    with pytest.raises(
        ConfigError, match="kernels/a/survivors.yaml: expected `mutant: why it survives` lines"
    ):
        explanations(folder, tmp_path)


@pytest.mark.slow
def test_every_explained_mutant_exists() -> None:
    """An explanation of a mutant that can no longer be made is out of date."""
    explained: set[str] = set()
    made: set[str] = set()
    with composer(ROOT / "conf") as composed:
        kernels = [
            from_plain(composed.option("kernel", name), Kernel) for name in options(ROOT / "conf", "kernel")
        ]
    for kernel in kernels:
        for implementation in kernel.implementations.values():
            if implementation.source:
                explained |= explanations(Path(implementation.source).parent, ROOT).keys()
                member = backend(implementation.backend)
                mutants = find_mutants(member.sources(implementation, ROOT), ROOT, member.language)
                made |= {mutant.id for each in mutants.values() for mutant in each}
    assert explained - made == set()


def _is_known(name: str) -> bool:
    """Whether git knows the kernel's yaml, or cannot say."""
    command = ["git", "ls-files", "--error-unmatch", f"conf/kernel/{name}.yaml"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode != 1


def test_every_kernel_of_the_repository_has_mutants() -> None:
    """A new kernel with sources of its own belongs to the experiment, unless git does not know it yet."""
    with composer(ROOT / "conf") as composed:
        kernels = {
            name: from_plain(composed.option("kernel", name), Kernel)
            for name in options(ROOT / "conf", "kernel")
        }
    experiment = yaml.safe_load((ROOT / "conf" / "experiment" / "mutation.yaml").read_text())["experiment"]
    named = {name for grid in experiment["select"] for name in grid["kernel"]}
    own = {
        name
        for name, kernel in kernels.items()
        if _is_known(name) and any(each.source for each in kernel.implementations.values())
    }
    assert named == own
