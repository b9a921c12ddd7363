"""The plan: which tasks there are, and which change reaches which stage's key."""

import msgspec
import pytest

from pipeline.plan.identity import stage_builds
from pipeline.plan.planner import PlanResult
from pipeline.plan.spec_files import is_whole
from pipeline.records.errors import ConfigError
from pipeline.records.layout import spec_path
from pipeline.records.planning.specs import AggregateSpec, CompileSpec, GenerateSpec, VerifySpec
from pipeline.stages.generate import generate
from tests.plan.project import KERNEL, Project, read_once

STAGES = ["generate", "compile", "verify", "profile", "aggregate"]
ONE_CPU = ("workload=small", "hardware=cpu")
ONE_GPU = ("workload=small", "hardware=h200")


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], dict[str, str]]:
    """The keys of the small project as it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage_builds, "Code", read_once)
        project = Project(tmp_path_factory.mktemp("untouched") / "project")
        return {lines: project.keys(*lines) for lines in (ONE_CPU, ONE_GPU)}


def changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Stages whose key differs."""
    return [stage for stage in STAGES if before[stage] != after[stage]]


def test_tasks_and_variants(project: Project) -> None:
    """Each cell is a task; implementations that cannot run on the kind take no part."""
    plan = project.plan()
    assert [(task.row.workload, task.row.hardware) for task in plan.tasks] == [
        ("small", "cpu"),
        ("large", "cpu"),
        ("small", "h100"),
        ("small", "h200"),
    ]
    assert [task.variants for task in plan.tasks] == [{"cpp": 4}, {"cpp": 4}, {"triton": 2}, {"triton": 2}]
    assert [task.row.device_present for task in plan.tasks] == [True, True, False, False]
    assert plan.pruned == ()


def test_specs_are_on_disk_and_name_their_content(project: Project) -> None:
    """Every key of a plan has its file, which is not touched when the plan is made again."""
    plan = project.plan()
    paths = [
        spec_path(project.store, stage, getattr(task.row, stage))
        for task in plan.tasks
        for stage in STAGES[:4]
    ] + [spec_path(project.store, "aggregate", plan.aggregate)]
    assert all(is_whole(path) for path in paths)
    times = [path.stat().st_mtime_ns for path in paths]
    assert project.plan() == plan
    assert [path.stat().st_mtime_ns for path in paths] == times


def test_a_broken_spec_is_written_again(project: Project) -> None:
    """A file that was cut or edited does not hold what its name says."""
    path = spec_path(project.store, "compile", project.keys(*ONE_CPU)["compile"])
    path.write_bytes(path.read_bytes()[:-10])
    assert not is_whole(path)
    project.plan(*ONE_CPU)
    assert is_whole(path)


def test_tasks_that_differ_in_a_name_share_their_work(project: Project) -> None:
    """H100 and H200 differ in bandwidth and cache, which no compiler reads: one binary, two rows."""
    first, second = project.plan("hardware=h100,h200").tasks
    assert first.row.compile == second.row.compile
    assert first.row.profile == second.row.profile
    assert first.row.peaks != second.row.peaks
    assert first.row.task != second.row.task


@pytest.mark.parametrize(
    ("path", "old", "new", "stages"),
    [
        ("conf/kernel/scale.yaml", "description: Doubles.", "description: Twice.", []),
        ("conf/kernel/scale.yaml", "reason: scalar code", "reason: because scalar code", STAGES),
        ("conf/kernel/scale.yaml", "values: [1, 2, 4]", "values: [1, 2]", STAGES),
        ("conf/kernel/scale.yaml", "default: 2\n", "default: 4\n", STAGES),
        ("conf/kernel/scale.yaml", "epilogue: none", "epilogue: relu", STAGES),
        ("conf/kernel/scale.yaml", 'reduction: "1"', 'reduction: "2"', STAGES[2:]),
        ("conf/kernel/scale.yaml", "reason: one exact product", "reason: exact", []),
        ("conf/kernel/scale.yaml", "flops: rows * cols", "flops: 2 * rows * cols", STAGES[3:]),
        ("conf/workload/small.yaml", "tokens: 8", "tokens: 9", STAGES),
        ("conf/workload/small.yaml", "source: test", "source: other", []),
        ("kernels/scale/scale.cpp", "return 0", "return 1", STAGES),
        ("kernels/common.hpp", "// shared", "// changed", STAGES),
        ("kernels/scale/reference.py", "2 * x", "x + x", STAGES[2:]),
        ("kernels/scale/reference.py", "def", "# a comment\ndef", []),
        ("kernels/scale/scale_triton.py", "pass", "return", []),
        ("conf/optimization/full.yaml", "description: all", "description: everything", []),
        ("conf/optimization/full.yaml", "description: all", "description: all, fixed: {LANES: 8}", STAGES),
        ("conf/search/grid.yaml", "strategy: grid", "strategy: grid\nvariants_per_round: 2", STAGES),
        ("conf/verify/standard.yaml", "seeds: 1", "seeds: 2", STAGES[2:]),
        ("conf/profile/standard.yaml", "batches_at_least: 8", "batches_at_least: 9", STAGES[3:]),
        ("conf/tracking/mlflow.yaml", "experiment: kernelmill", "experiment: other", STAGES[4:]),
        ("conf/experiment/default.yaml", "Both kinds.", "Both.", STAGES[4:]),
    ],
)
def test_a_change_reaches_the_stages_that_read_it(
    project: Project,
    untouched: dict[tuple[str, ...], dict[str, str]],
    path: str,
    old: str,
    new: str,
    stages: list[str],
) -> None:
    """Each key changes with what its stage reads, and with nothing else."""
    project.edit(path, old, new)
    assert changed(untouched[ONE_CPU], project.keys(*ONE_CPU)) == stages


@pytest.mark.parametrize(
    ("old", "new", "stages"),
    [
        ("value: 4800000000000.0", "value: 4800000000001.0", STAGES[4:]),
        ("value: 60", "value: 61", STAGES[4:]),
        ("threads_per_block: {value: 1024", "threads_per_block: {value: 512", STAGES),
        ("sm_90", "sm_100", STAGES[1:]),
        ("name: h200\ndescription: A GPU.", "name: h200\ndescription: The GPU.", []),
    ],
)
def test_a_hardware_number_reaches_the_stages_that_read_it(
    project: Project,
    untouched: dict[tuple[str, ...], dict[str, str]],
    old: str,
    new: str,
    stages: list[str],
) -> None:
    """A peak, and a cache that no constraint names, is for the analysis alone; a limit for all."""
    project.edit("conf/hardware/h200.yaml", old, new)
    assert changed(untouched[ONE_GPU], project.keys(*ONE_GPU)) == stages


def variants(project: Project, *lines: str) -> set[str]:
    """Ids of what generate proposes."""
    key = project.keys(*lines)["generate"]
    spec = project.spec("generate", key)
    assert isinstance(spec, GenerateSpec)
    return {variant.id for variant in generate(spec, [], key=key, round_number=0).variants}


def test_one_more_value_leaves_the_other_variants_as_they_are(project: Project) -> None:
    """The old variants keep their ids, and what compile reads of the implementation stays equal."""
    before, keys = variants(project, *ONE_CPU), project.keys(*ONE_CPU)
    project.edit("conf/kernel/scale.yaml", "values: [1, 2, 4]", "values: [1, 2, 4, 8]")
    after, more = variants(project, *ONE_CPU), project.keys(*ONE_CPU)
    assert after > before
    assert len(after) == len(before) + 1
    old, new = (project.spec("compile", each["compile"]) for each in (keys, more))
    assert isinstance(old, CompileSpec) and isinstance(new, CompileSpec)
    assert msgspec.structs.replace(old, parent="") == msgspec.structs.replace(new, parent="")


@pytest.mark.parametrize(("stage", "stages"), [("generate", STAGES), ("verify", STAGES[2:])])
def test_code_is_part_of_the_key(
    project: Project, monkeypatch: pytest.MonkeyPatch, stage: str, stages: list[str]
) -> None:
    """Other code of a stage, other keys from there on."""
    from pipeline.plan.identity.import_closure import Code

    before = project.keys(*ONE_CPU)
    real = Code.digest

    def edited(code: Code, *modules: str) -> str:
        return "edited" if f"pipeline.stages.{stage}" in modules else real(code, *modules)

    monkeypatch.setattr(Code, "digest", edited)
    assert changed(before, project.keys(*ONE_CPU)) == stages


def test_the_compiler_is_part_of_the_key(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another compiler version: compile and all that comes after it."""
    from pipeline.backends.cpp import Cpp

    before = project.keys(*ONE_CPU)
    monkeypatch.setattr(Cpp, "toolchain", lambda *_: {"c++": "99"})
    assert changed(before, project.keys(*ONE_CPU)) == STAGES[1:]


def test_the_libraries_are_part_of_the_key(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another PyTorch: verify and what comes after it."""
    from pipeline.plan.identity import tool_versions

    before = project.keys(*ONE_CPU)
    real = tool_versions.version_of
    monkeypatch.setattr(tool_versions, "version_of", lambda name: "99" if name == "torch" else real(name))
    assert changed(before, project.keys(*ONE_CPU)) == STAGES[2:]


def test_another_machine_of_the_same_instruction_set_measures_again(project: Project) -> None:
    """Binaries and verdicts are shared between equal instruction sets, measurements are not."""
    before = project.keys(*ONE_CPU)
    cpu = msgspec.structs.replace(project.machine.cpu, facts={"model": "Other CPU"})
    project.machine = msgspec.structs.replace(project.machine, cpu=cpu)
    assert changed(before, project.keys(*ONE_CPU)) == STAGES[3:]


def test_memory_and_kernel_release_are_for_the_record_only(project: Project) -> None:
    """Facts that no result depends on change no key."""
    before = project.keys(*ONE_CPU)
    facts = {**project.machine.cpu.facts, "memory_bytes": "2", "system": "Linux 99"}
    cpu = msgspec.structs.replace(project.machine.cpu, facts=facts)
    project.machine = msgspec.structs.replace(project.machine, cpu=cpu)
    assert changed(before, project.keys(*ONE_CPU)) == []


def test_rounds_feed_back(project: Project) -> None:
    """With several rounds generate reads what profile measured: it depends on all that profile depends on."""
    rounds = ("search.rounds=2", "search.variants_per_round=2")
    before = project.keys(*ONE_CPU, *rounds)
    assert project.task(*ONE_CPU, *rounds).proposed == 2
    assert changed(before, project.keys(*ONE_CPU, *rounds, "profile.batches_at_least=9")) == STAGES
    spec = project.spec("generate", before["generate"])
    assert isinstance(spec, GenerateSpec) and spec.feedback is not None


def test_the_chain_is_linked(project: Project) -> None:
    """Each spec names its parent's key; verify of an absent device says so."""
    keys = project.keys(*ONE_GPU)
    compiled, verified = (project.spec(stage, keys[stage]) for stage in ("compile", "verify"))
    assert isinstance(compiled, CompileSpec) and isinstance(verified, VerifySpec)
    assert compiled.parent == keys["generate"]
    assert verified.parent == keys["compile"]
    assert not verified.device_present
    assert list(compiled.builds) == ["triton"]


def test_pruned_cells_have_a_reason(project: Project) -> None:
    """A dimension that a workload lacks, a kind without implementation, no valid variant: listed, not run."""
    project.write(
        "conf/workload/narrow.yaml",
        "{name: narrow, description: n, source: t, dtype: float32, dimensions: {tokens: 4}}\n",
    )
    project.edit("conf/kernel/scale.yaml", "too many threads", "too many threads indeed")
    plan = project.plan(
        "workload=small,narrow", "hardware=cpu,h200", "hardware.limits.threads_per_block.value=64"
    )
    assert [(task.row.workload, task.row.hardware) for task in plan.tasks] == [("small", "cpu")]
    assert [str(cell) for cell in plan.pruned] == [
        "scale x small x h200 x full: no valid variant: triton: too many threads indeed "
        "(`num_warps * warp_size <= threads_per_block`)",
        "scale x narrow x cpu x full: workload narrow has no dimension 'hidden'",
        "scale x narrow x h200 x full: workload narrow has no dimension 'hidden'",
    ]
    spec = project.spec("aggregate", plan.aggregate)
    assert isinstance(spec, AggregateSpec) and len(spec.pruned) == 3


@pytest.mark.parametrize(
    ("file", "old", "new", "text"),
    [
        (
            "conf/kernel/scale.yaml",
            "rows: tokens",
            "rows: tokns",
            "conf/kernel/scale.yaml: dimensions.rows: `tokns`: no workload has 'tokns'; "
            "did you mean 'tokens'? (known: hidden, tokens)",
        ),
        (
            "conf/workload/small.yaml",
            "tokens: 8",
            "tokns: 8",
            "conf/workload/small.yaml: dimensions.tokns: no kernel reads it; "
            "did you mean 'tokens'? (known: hidden, tokens)",
        ),
    ],
)
def test_an_unknown_dimension(project: Project, file: str, old: str, new: str, text: str) -> None:
    """The file, the key, the known names and the nearest one, instead of a cell that is left out."""
    project.edit(file, old, new)
    with pytest.raises(ConfigError) as error:
        project.plan()
    assert str(error.value).endswith(text)


def test_a_wrong_kernel_that_nobody_chose(project: Project) -> None:
    """Names are checked against the others; its error is raised where it may have the missing name."""
    kernel = KERNEL
    project.write(
        "conf/kernel/other.yaml", kernel.replace("name: scale", "name: other").replace("tokens", "experts")
    )
    project.write("conf/kernel/broken.yaml", "name: [\n")
    project.edit("conf/workload/small.yaml", "tokens: 8", "tokens: 8, experts: 2")
    assert [task.row.workload for task in project.plan(*ONE_CPU, "kernel=scale").tasks] == ["small"]
    project.edit("conf/workload/small.yaml", "experts: 2", "exprts: 2")
    with pytest.raises(ConfigError, match=r"conf/kernel/broken.yaml: line 2.*: not YAML"):
        project.plan(*ONE_CPU, "kernel=scale")


def test_an_optimization_may_leave_nothing_for_a_device(project: Project) -> None:
    """Only implementations that take part and fit the device's kind count."""
    project.write(
        "conf/optimization/cpu_only.yaml", "{name: cpu_only, description: c, implementations: [cpp]}\n"
    )
    plan = project.plan("optimization=cpu_only")
    reason = "no implementation runs on cuda (there is cpp)"
    assert [str(cell) for cell in plan.pruned] == [
        f"scale x small x {name} x cpu_only: {reason}" for name in ("h100", "h200")
    ]


def test_nothing_left_is_an_error(project: Project) -> None:
    """A plan without tasks says why instead of doing nothing."""
    with pytest.raises(ConfigError) as caught:
        project.plan("workload=small", "hardware=h200", "hardware.limits.threads_per_block.value=64")
    assert str(caught.value).startswith(
        "nothing to do: no cell of the grid is possible: scale x small x h200"
    )


def test_values_apply_to_every_chosen_option(project: Project) -> None:
    """One override of a value reaches all options of its group that were chosen."""
    plan = project.plan("hardware=cpu", "workload.dimensions.tokens=3")
    assert [task.row.dimensions["rows"] for task in plan.tasks] == [3, 3]


def test_made_knows_what_it_read(project: Project) -> None:
    """The sources and tools that a plan depends on are known to whoever wants to keep it."""
    made: PlanResult = project.make(*ONE_CPU)
    names = {path.rsplit("/", 1)[1] for path in made.files}
    assert names == {"scale.cpp", "common.hpp", "reference.py"}
    assert [tools.backend for tools in made.toolchains] == ["cpp"]


def test_a_thousand_tasks_take_seconds(project: Project) -> None:
    """10 kernels x 10 workloads x 5 devices x 2 optimizations: composed one by one, not cell by cell."""
    import time

    kernel, gpu = project.folder / "conf/kernel/scale.yaml", project.folder / "conf/hardware/h200.yaml"
    for number in range(10):
        project.write(
            f"conf/kernel/k{number}.yaml", kernel.read_text().replace("name: scale", f"name: k{number}")
        )
        project.write(
            f"conf/workload/w{number}.yaml",
            f"{{name: w{number}, description: w, source: t, dtype: float32,"
            f" dimensions: {{tokens: {number + 1}, hidden: 64}}}}\n",
        )
        project.write(
            f"conf/hardware/g{number}.yaml",
            gpu.read_text().replace("name: h200", f"name: g{number}").replace("sm_90", f"sm_{number + 80}"),
        )
    started = time.process_time()
    plan = project.plan(
        "kernel=glob(k*)", "workload=glob(w*)", "hardware=g0,g1,g2,g3,cpu", "optimization=full,scalar"
    )
    assert len(plan.tasks) == 1000
    assert time.process_time() - started < 10, "aim: 5 s on an idle machine"


def test_sizes_of_a_grid(project: Project) -> None:
    """Tasks of other sizes are those that overrides would make, and share their results."""
    project.edit(
        "conf/experiment/default.yaml",
        "workload: [small, large], ",
        "workload: [small], dimensions: {tokens: [8, 16]}, ",
    )
    rows = [task.row for task in project.plan("hardware=cpu").tasks]
    assert [row.workload for row in rows] == ["small[tokens=8]", "small[tokens=16]"]
    assert [row.dimensions["rows"] for row in rows] == [8, 16]
    for row in rows:
        (given,) = project.plan(*ONE_CPU, *row.varied).tasks
        assert given.row.workload == "small"
        assert [getattr(row, stage) for stage in STAGES[:-1]] == [
            getattr(given.row, stage) for stage in STAGES[:-1]
        ]
