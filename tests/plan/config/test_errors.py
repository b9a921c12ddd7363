"""Whatever is wrong in conf/ or in an override is one line that names the file, the key and what is known."""

# ruff: noqa: E501 (a case is one line: file, text, replacement, message)

import pytest

from pipeline.records.errors import ConfigError, ToolchainError
from tests.plan.project import Project

KERNEL = "conf/kernel/scale.yaml"


def error(project: Project, *lines: str) -> str:
    """The text of the error that planning ends with."""
    with pytest.raises(ConfigError) as caught:
        project.plan(*lines)
    return str(caught.value)


@pytest.mark.parametrize(
    ("path", "old", "new", "text"),
    [
        (KERNEL, "values: [1, 2, 4]", "values: 4", "implementations.cpp.tunables.UNROLL.values: expected a list, got int 4"),
        (
            KERNEL,
            "    tunables:\n      LANES:",
            "    tunabels:\n      LANES:",
            "unknown key 'tunabels' in implementations.cpp (known: backend, source, entry, call, launch, uses_torch, "
            "tunables, constraints, origin, licence); did you mean 'tunables'?",
        ),
        (KERNEL, "category: test\n", "", "missing key 'category' (expected a string)"),
        (KERNEL, "category: test", "category: ???", "category: missing value (expected a string)"),
        (KERNEL, "category: test", "category: [test]", "category: expected a string, got a list"),
        (KERNEL, "entry: scale", "entry: 3", "implementations.cpp.entry: expected a string, got int 3"),
        (KERNEL, "  y: {role: output,", "  y: {role: result,", "tensors.y.role: expected one of input, output, got str 'result'"),
        (KERNEL, "attributes:\n  epilogue: none", "attributes: none", "attributes: expected a mapping, got str 'none'"),
        (KERNEL, "epilogue: none", "epilogue: [none]", "attributes.epilogue: expected true or false or an integer or a number or a string, got a list"),
        (KERNEL, "backend: cpp", "backend: c", "implementations.cpp.backend: unknown backend 'c' (known: cpp, cuda, triton)"),
        (KERNEL, "default: 2\n", "default: 3\n", "implementations.cpp.tunables.UNROLL.default: 3 is not one of its values (1, 2, 4)"),
        (KERNEL, '"off": 1', '"off": 2', "implementations.cpp.tunables.LANES.off: 2 is not one of its values (1, 8)"),
        (KERNEL, "values: [1, 2, 4]", "values: [1, 2, 2]", "implementations.cpp.tunables.UNROLL.values: 2 stands there twice"),
        (KERNEL, "values: [1, 2, 4]", "values: []", "implementations.cpp.tunables.UNROLL.values: expected at least one"),
        (KERNEL, "x: {role: input, shape: [rows, cols]}", "x: {role: input, shape: [rows, clos]}", "tensors.x.shape: unknown dimension 'clos' (known: rows, cols); did you mean 'cols'?"),
        (KERNEL, "x: {role: input, shape: [rows, cols]}", "x: {role: input, shape: [rows], layout: row_strided}", "tensors.x.layout: row_strided needs two axes, got 1"),
        (KERNEL, "x: {role: input, shape: [rows, cols]}", "x: {role: input, shape: [rows], dtype: f32}", "tensors.x.dtype: unknown type 'f32' (known: element, float64"),
        (KERNEL, "  y: {role: output,", "  y: {role: input,", "tensors: expected at least one output"),
        (KERNEL, "rows: tokens", "x: tokens", "tensors.x.shape: unknown dimension 'rows' (known: x, cols)"),
        (KERNEL, "flops: rows * cols", "flops: rows * hidden", "cost.flops: `rows * hidden`: unknown name 'hidden' (known: cols, epilogue, itemsize, rows)"),
        (KERNEL, "rule: LANES * 32 <= vector_bits", "rule: LANES * 32 <=", "implementations.cpp.constraints[0].rule: `LANES * 32 <=`: not an expression: invalid syntax"),
        (KERNEL, "rule: LANES * 32 <= vector_bits", "rule: LANE * 32 <= vector_bits", "constraints: `LANE * 32 <= vector_bits`: unknown name 'LANE' (known: LANES, UNROLL, cols, epilogue, itemsize, l2_cache, rows, vector_bits)"),
        (KERNEL, "reference: kernels.scale.reference:double", "reference: kernels.scale.reference", "reference: expected module:function, got 'kernels.scale.reference'"),
        (KERNEL, "reference: kernels.scale.reference:double", "reference: kernels.scale.refs:double", "reference: there is no module kernels.scale.refs"),
        (KERNEL, "source: kernels/scale/scale.cpp", "source: kernels/scale/scael.cpp", "implementations.cpp.source: there is no file kernels/scale/scael.cpp"),
        (KERNEL, "name: scale", "name: scales", "name: expected 'scale' as the file is called, got 'scales'"),
        (KERNEL, "name: scale", "name: [scale", "line 2, column"),
        (KERNEL, "category: test", "category: ${nowhere}", "Interpolation key 'nowhere' not found"),
        ("conf/workload/small.yaml", "tokens: 8", "tokens: 0", "dimensions.tokens: expected at least 1, got 0"),
        ("conf/workload/small.yaml", "dtype: float32", "dtype: fp32", "dtype: expected one of float32, float16, bfloat16, got str 'fp32'"),
        ("conf/workload/small.yaml", "tokens: 8", "tokens: many", "dimensions.tokens: expected an integer, got str 'many'"),
        ("conf/hardware/cpu.yaml", "kind: cpu", "kind: gpu", "kind: unknown kind of device 'gpu' (known: cpu, cuda, hip, recorded); did you mean 'cpu'?"),
        ("conf/hardware/cpu.yaml", "native", "x86-64", "limits: expected at least one (only architecture: native is read from the machine)"),
        ("conf/optimization/full.yaml", "all}", "all, fixed: {LANS: 1}}", "fixed: no kernel has 'LANS' (known: LANES, UNROLL, num_warps); did you mean 'LANES'?"),
        ("conf/optimization/full.yaml", "all}", "all, fixed: {LANES: 4}}", "fixed.LANES: 4 is not one of its values (1, 8)"),
        ("conf/optimization/full.yaml", "all}", "all, free: [UNROL]}", "free: no kernel has 'UNROL' (known: LANES, UNROLL, num_warps); did you mean 'UNROLL'?"),
        ("conf/optimization/full.yaml", "all}", "all, free: UNROLL}", "free: expected one of all or a list, got str 'UNROLL'"),
        ("conf/optimization/full.yaml", "all}", "all, techniques: [tiling]}", "techniques: no kernel has 'tiling' (known: vectorization)"),
        ("conf/optimization/full.yaml", "all}", "all, implementations: [cuda]}", "implementations: no kernel has 'cuda' (known: cpp, triton)"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: gird", "strategy: unknown name 'gird' (known: ablation, basin_hopping, candidates"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: grid\noptuna: {sampler: gp}", "optuna: settings of another strategy; got strategy: grid"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: optuna\noptuna: {samplr: gp}", "unknown key 'samplr' in optuna (known: sampler, objectives, trials_at_most, settings); did you mean 'sampler'?"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: optuna\nseconds: 0", "seconds: expected more than 0, got 0"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: optuna\nseconds: .nan", "seconds: expected a finite number, got nan"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: optuna\njoules: .inf", "joules: expected a finite number, got inf"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: optuna\nconvergence: {percent: .nan, rounds: 2}", "convergence.percent: expected a finite number, got nan"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: grid\nseed: 99999999999999999999", "seed: expected a number of at most 63 bits, got one of 67"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: optuna\noptuna: {trials_at_most: 1}", "optuna.trials_at_most: expected at least 2, got 1"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: optuna\noptuna: {objectives: [seconds, error]}", "optuna.objectives: tpe takes one, got ['seconds', 'error']"),
        ("conf/search/grid.yaml", "strategy: grid", 'strategy: candidates\ncandidates: {folder: ""}', "candidates.folder: empty; expected a folder of sources"),
        (KERNEL, "values: [1, 2, 4]", "values: [1, .nan, 4]", "implementations.cpp.tunables.UNROLL.values[1]: expected a finite number, got nan"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: successive_halving\nvariants_per_round: 9", "rounds: a bracket has 3 rungs, got 1: nothing would be measured fully"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: ablation\nevolution: {population: 2}", "evolution: settings of another strategy; got strategy: ablation"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: ablation\nablation: {search: llm}", "ablation: llm cannot search for another strategy"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: ablation\nablation: {search: tpe}", "ablation: unknown strategy 'tpe' (known: ablation, basin_hopping, candidates"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: evolution\nevolution: {stagnation: 2}", "did you mean 'stagnation_rounds'?"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: evolution\nevolution: {crossover: 2}", "evolution.crossover: expected a share from 0 to 1, got 2"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: evolution\nevolution: {population: many}", "evolution.population: expected an integer, got str 'many'"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: candidates", "missing key 'folder' in candidates (expected a string)"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: surrogate\nsurogate: {startup: 4}", "did you mean 'surrogate'?"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: grid\nsettings: {grid: {}}", "unknown key 'settings' (known: name, description, strategy"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: grid\nprune: {occupancy_at_least: 7}", "prune.occupancy_at_least: expected a share from 0 to 1, got 7"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: grid\nprune: {spills_at_most: -1}", "prune.spills_at_most: expected at least 0, got -1"),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: grid\nrounds: 2", "variants_per_round: several rounds need a number, or the first one takes all"),
        ("conf/experiment/default.yaml", "workload: [small, large]", "workload: [small, lareg]", "select[0].workload: unknown workload 'lareg' (known: large, small); did you mean 'large'?"),
        ("conf/experiment/default.yaml", "workload: [small, large]", "workload: []", "select[0].workload: expected at least one name"),
        ("conf/experiment/default.yaml", "  name: default\n", "  name: default\n  titel: x\n", "unknown key 'titel' (known: name, description, select)"),
        ("conf/experiment/default.yaml", "experiment:\n", "verfiy: {seeds: 2}\nexperiment:\n", "unknown key 'verfiy' (known: search, verify, mutation, profile, tracking, objective, experiment); did you mean 'verify'?"),
        ("conf/experiment/default.yaml", "override /verify: fast", "override /verify: quick", "Could not find 'verify/quick'"),
    ],
)  # fmt: skip
def test_a_wrong_yaml(project: Project, path: str, old: str, new: str, text: str) -> None:
    """File first, then the key, then what was expected and got."""
    project.edit(path, old, new)
    found = error(project)
    assert found.startswith("conf/config.yaml: " if "Could not find" in text else path), found
    assert text in found
    assert "\n" not in found


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["kernel=scael"], "kernel=scael: unknown kernel 'scael' (known: scale); did you mean 'scale'?"),
        (["kernle=scale"], "kernle=scale: unknown group 'kernle' (known: kernel, workload, hardware, optimization, search, verify, mutation, profile, tracking, objective, experiment); did you mean 'kernel'?"),
        (["kernel"], "kernel: not an override (expected group=option, group=option,option or group.key=value)"),
        (["kernel="], "kernel=: unknown kernel ''"),
        (["+kernel=scale"], "+kernel=scale: expected kernel=option"),
        (["verify=fast,standard"], "verify=fast,standard: expected one verify (known: fast, paranoid, standard)"),
        (["verify.seeds=1,2"], "verify.seeds=1,2: several values where there can be one (a list is written [1,2])"),
        (["verify.sedes=1"], "verify.sedes=1: there is no 'sedes' in verify (known: name, description, seeds"),
        (["workload.dimensions.tokns=1"], "workload.dimensions.tokns=1: no chosen option has 'tokns' in workload.dimensions (known: tokens, hidden); did you mean 'tokens'?"),
        (["kernel.implementations.cpp.tunables.UNROL.values=[1]"], "kernel.implementations.cpp.tunables.UNROL.values=[1]: there is no 'UNROL' in kernel.implementations.cpp.tunables (known: LANES, UNROLL)"),
        (["kernel.implementations.cpp.tunables.UNROLL.values=4"], "conf/kernel/scale.yaml (with kernel.implementations.cpp.tunables.UNROLL.values=4): implementations.cpp.tunables.UNROLL.values: expected a list, got int 4"),
        (["verify.seeds=many"], "conf/verify/fast.yaml (with verify.seeds=many): seeds: expected an integer, got str 'many'"),
        (["verify.output_limit=0"], "conf/verify/fast.yaml (with verify.output_limit=0): output_limit: got 0, expected more than 0"),
        (["experiment=defualt"], "experiment=defualt: unknown experiment 'defualt' (known: default); did you mean 'default'?"),
        (["search=grid", "search.convergence={percent: 1}"], "conf/search/grid.yaml (with search.convergence={percent: 1}): missing key 'rounds' in convergence"),
        (["workload=glob(x*)"], "workload=glob(x*): expected one workload (known: large, small)"),
    ],
)  # fmt: skip
def test_a_wrong_override(project: Project, lines: list[str], text: str) -> None:
    """The override as it was written, then what is wrong with it and what is known."""
    found = error(project, *lines)
    assert found.startswith(text)
    assert "\n" not in found


def test_an_option_is_named_that_only_an_override_reaches(project: Project) -> None:
    """An option that the experiment does not have is checked as well."""
    project.write("conf/workload/odd.yaml", "{name: odd}\n")
    assert error(project, "workload=odd") == (
        "conf/workload/odd.yaml: missing key 'description' (expected a string)"
    )


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
