"""Whatever is wrong in conf/ or in an override is one line that names the file, the key and what is known.

The texts are the snapshot in `__snapshots__`: `pytest --snapshot-update` with this file accepts new ones.
"""

# ruff: noqa: E501 (a case is one line: file, text, replacement)

import pytest
from syrupy.assertion import SnapshotAssertion

from pipeline.records.errors import ConfigError, ToolchainError
from tests.plan.project import Project

KERNEL = "conf/kernel/scale.yaml"


def error(project: Project, *lines: str) -> str:
    """The text of the error that planning ends with."""
    with pytest.raises(ConfigError) as caught:
        project.plan(*lines)
    return str(caught.value).replace(f"{project.folder}/", "")


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (KERNEL, "values: [1, 2, 4]", "values: 4"),
        (KERNEL, "    tunables:\n      LANES:", "    tunabels:\n      LANES:"),
        (KERNEL, "category: test\n", ""),
        (KERNEL, "category: test", "category: ???"),
        (KERNEL, "category: test", "category: [test]"),
        (KERNEL, "entry: scale", "entry: 3"),
        (KERNEL, "  y: {role: output,", "  y: {role: result,"),
        (KERNEL, "attributes:\n  epilogue: none", "attributes: none"),
        (KERNEL, "epilogue: none", "epilogue: [none]"),
        (KERNEL, "backend: cpp", "backend: c"),
        (KERNEL, "default: 2\n", "default: 3\n"),
        (KERNEL, '"off": 1', '"off": 2'),
        (KERNEL, "values: [1, 2, 4]", "values: [1, 2, 2]"),
        (KERNEL, "values: [1, 2, 4]", "values: []"),
        (KERNEL, "x: {role: input, shape: [rows, cols]}", "x: {role: input, shape: [rows, clos]}"),
        (KERNEL, "x: {role: input, shape: [rows, cols]}", "x: {role: input, shape: [rows], layout: row_strided}"),
        (KERNEL, "x: {role: input, shape: [rows, cols]}", "x: {role: input, shape: [rows], dtype: f32}"),
        (KERNEL, "x: {role: input, shape: [rows, cols]}", 'x: {role: input, shape: ["rows / clos"]}'),
        (KERNEL, "x: {role: input, shape: [rows, cols]}", "x: {role: input, shape: [rows], below: 0}"),
        (KERNEL, "x: {role: input, shape: [rows, cols]}", "x: {role: input, shape: [rows], row_norm: 0}"),
        (KERNEL, "y: {role: output, shape: [rows, cols]}", "y: {role: output, shape: [rows], row_norm: 1}"),
        (KERNEL, "x: {role: input, shape: [rows, cols]}", "x: {role: input, shape: [rows], cumulative: true}"),
        (KERNEL, "x: {role: input, shape: [rows, cols]}", "x: {role: input, shape: [rows], distinct: true}"),
        (KERNEL, "y: {role: output, shape: [rows, cols]}", 'y: {role: output, shape: ["2 * clos"]}'),
        (KERNEL, "  y: {role: output,", "  y: {role: input,"),
        (KERNEL, "rows: tokens", "x: tokens"),
        (KERNEL, "flops: rows * cols", "flops: rows * hidden"),
        (KERNEL, "rule: LANES * 32 <= vector_bits", "rule: LANES * 32 <="),
        (KERNEL, "rule: LANES * 32 <= vector_bits", "rule: LANE * 32 <= vector_bits"),
        (KERNEL, "reference: kernels.scale.reference:double", "reference: kernels.scale.reference"),
        (KERNEL, "reference: kernels.scale.reference:double", "reference: kernels.scale.refs:double"),
        (KERNEL, "magnitude: kernels.scale.reference:double", "magnitude: kernels.scale.reference:dubble"),
        (KERNEL, "    entry: scale\n", "    entry: scael\n"),
        (KERNEL, "    entry: launch\n", "    entry: lanch\n"),
        (KERNEL, "source: kernels/scale/scale.cpp", "source: kernels/scale/scael.cpp"),
        (KERNEL, "name: scale", "name: scales"),
        (KERNEL, "name: scale", "name: [scale"),
        (KERNEL, "category: test", "category: ${nowhere}"),
        ("conf/workload/small.yaml", "tokens: 8", "tokens: 0"),
        ("conf/workload/small.yaml", "dtype: float32", "dtype: fp32"),
        ("conf/workload/small.yaml", "tokens: 8", "tokens: many"),
        ("conf/hardware/cpu.yaml", "kind: cpu", "kind: gpu"),
        ("conf/hardware/cpu.yaml", "native", "x86-64"),
        ("conf/optimization/full.yaml", "all}", "all, fixed: {LANS: 1}}"),
        ("conf/optimization/full.yaml", "all}", "all, fixed: {LANES: 4}}"),
        ("conf/optimization/full.yaml", "all}", "all, free: [UNROL]}"),
        ("conf/optimization/full.yaml", "all}", "all, free: UNROLL}"),
        ("conf/optimization/full.yaml", "all}", "all, techniques: [tiling]}"),
        ("conf/optimization/full.yaml", "all}", "all, implementations: [cuda]}"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: gird"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: grid\noptuna: {sampler: gp}"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: optuna\noptuna: {samplr: gp}"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: optuna\nseconds: 0"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: optuna\nseconds: .nan"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: optuna\njoules: .inf"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: optuna\nconvergence: {percent: .nan, rounds: 2}"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: grid\nseed: 99999999999999999999"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: optuna\noptuna: {trials_at_most: 1}"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: optuna\noptuna: {objectives: [seconds, error]}"),
        ("conf/search/grid.yaml", "strategy: grid", 'strategy: candidates\ncandidates: {folder: ""}'),
        (KERNEL, "values: [1, 2, 4]", "values: [1, .nan, 4]"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: successive_halving\nvariants_per_round: 9"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: ablation\nevolution: {population: 2}"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: ablation\nablation: {search: llm}"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: ablation\nablation: {search: tpe}"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: evolution\nevolution: {stagnation: 2}"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: evolution\nevolution: {crossover: 2}"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: evolution\nevolution: {population: many}"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: candidates"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: surrogate\nsurogate: {startup: 4}"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: grid\nsettings: {grid: {}}"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: grid\nprune: {occupancy_at_least: 7}"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: grid\nprune: {spills_at_most: -1}"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: grid\nrounds: 2"),
        ("conf/experiment/default.yaml", "workload: [small, large]", "workload: [small, lareg]"),
        ("conf/experiment/default.yaml", "workload: [small, large]", "workload: []"),
        ("conf/experiment/default.yaml", "workload: [small, large]", "workload: [small], dimensions: {tokens: [4, 0]}"),
        ("conf/experiment/default.yaml", "workload: [small, large]", "workload: [small], dimensions: {token: [4]}"),
        ("conf/experiment/default.yaml", "  name: default\n", "  name: default\n  titel: x\n"),
        ("conf/experiment/default.yaml", "experiment:\n", "verfiy: {seeds: 2}\nexperiment:\n"),
        ("conf/experiment/default.yaml", "experiment:\n", "search: {strategy: gird}\nexperiment:\n"),
        ("conf/verify/standard.yaml", "seeds: 1", "seedz: 1"),
        (KERNEL, "category:", "categroy:"),
        (KERNEL, "category:", "\tcategory:"),
        (KERNEL, "category:", "name: other\ncategory:"),
        (KERNEL, "role: output", "role: outptu"),
        (KERNEL, "backend: triton", "backend: tritonn"),
        (KERNEL, "flops: rows * cols", "flops: rows *"),
        (KERNEL, "reference: kernels.scale.reference:double", "reference: kernels.scale.reference:triple"),
        ("conf/hardware/h100.yaml", "kind: cuda", "kind: cuad"),
        ("conf/hardware/h100.yaml", "{value: 32, unit: threads, source: test}", "32"),
        ("conf/experiment/default.yaml", "override /verify: fast", "override /verify: quick"),
    ],
)  # fmt: skip
def test_a_wrong_yaml(project: Project, path: str, old: str, new: str, snapshot: SnapshotAssertion) -> None:
    """File first, then the key, then what was expected and got."""
    project.edit(path, old, new)
    found = error(project)
    assert found.startswith(path)
    assert "\n" not in found
    assert found == snapshot


@pytest.mark.parametrize(
    "lines",
    [
        ["kernel=scael"],
        ["kernle=scale"],
        ["kernel"],
        ["kernel="],
        ["+kernel=scale"],
        ["verify=fast,standard"],
        ["verify.seeds=1,2"],
        ["verify.sedes=1"],
        ["workload.dimensions.tokns=1"],
        ["kernel.implementations.cpp.tunables.UNROL.values=[1]"],
        ["kernel.implementations.cpp.tunables.UNROLL.values=4"],
        ["kernel.implementations.cpp.tunables.UNROLL.prefer=[2]"],
        ["kernel.implementations.cpp.tunables.UNROLL.prefer=[3]"],
        ["verify.seeds=many"],
        ["verify.output_limit=0"],
        ["experiment=defualt"],
        ["LANES=8"],
        ["search=grid", "search.convergence={percent: 1}"],
        ["workload=glob(x*)"],
    ],
)  # fmt: skip
def test_a_wrong_override(project: Project, lines: list[str], snapshot: SnapshotAssertion) -> None:
    """The override as it was written, then what is wrong with it and what is known."""
    found = error(project, *lines)
    assert lines[-1] in found
    assert "\n" not in found
    assert found == snapshot


def test_an_option_is_named_that_only_an_override_reaches(project: Project) -> None:
    """An option that the experiment does not have is checked as well."""
    project.write("conf/workload/odd.yaml", "{name: odd}\n")
    assert error(project, "workload=odd") == (
        "conf/workload/odd.yaml: missing key 'description' (expected a string)"
    )


def test_an_experiment_without_its_first_line(project: Project) -> None:
    """It would be composed one level too deep."""
    text = (project.folder / "conf/experiment/default.yaml").read_text()
    project.write("conf/experiment/mine.yaml", text[text.index("experiment:") :].replace("default", "mine"))
    expected = "conf/experiment/mine.yaml: expected as its first line: # @package _global_"
    assert error(project, "experiment=mine") == expected


def test_a_bare_off_is_a_key(project: Project) -> None:
    """YAML 1.1 reads a bare `off` as false; both spellings mean the field."""
    before = project.keys("workload=small", "hardware=cpu")
    project.edit("conf/kernel/scale.yaml", '"off": 1', "off: 1")
    assert project.keys("workload=small", "hardware=cpu") == before


CALL = """  liger:
    backend: triton
    call: {function: nobody.ops:f, arguments: [x], results: [y], package: nobody}
    origin: a test
    licence: Apache-2.0
"""


def test_a_missing_package_is_told_where_it_is_chosen(project: Project) -> None:
    """One line with the command that brings it; a kernel that is not chosen may name what is not there."""
    text = (project.folder / KERNEL).read_text()
    (project.folder / "conf/kernel/foreign.yaml").write_text(
        text.replace("name: scale", "name: foreign") + CALL
    )
    project.plan()
    with pytest.raises(ToolchainError, match="nobody is not installed: python -m pip install nobody"):
        project.plan("kernel=foreign")


def test_a_source_and_a_call_exclude_each_other(project: Project) -> None:
    """And one of them is needed."""
    project.edit(KERNEL, "    entry: scale\n", "")
    assert "implementations.cpp: missing key 'entry' (or 'call'" in error(project)


def test_sources_that_a_link_leads_to_elsewhere(project: Project) -> None:
    """Identity, bundles and mutants name sources by their paths in the project."""
    elsewhere = (project.folder / "kernels").rename(project.folder.parent / "elsewhere")
    (project.folder / "kernels").symlink_to(elsewhere)
    assert str(elsewhere / "scale") in error(project)
