"""Tasks on recorded measurements: which implementation, which space; and what is told otherwise."""

import json
from pathlib import Path

import pytest

from pipeline.plan.local_machine import read_machine
from pipeline.plan.planner import PlanResult, make_plan
from pipeline.records.errors import ConfigError
from pipeline.records.layout import spec_path
from pipeline.records.planning.specs import CompileSpec, GenerateSpec, ProfileSpec
from pipeline.records.record import read_record
from tests.interop.replay.recordings import result, t4, written
from tests.paths import ROOT

RECORDED = ("kernel=recorded", "workload=recorded", "optimization=full", "hardware=recorded", "search=grid")
SOFTMAX = ("kernel=softmax", "workload=bert_base", "optimization=full", "hardware=recorded", "search=grid")


def planned(tmp_path: Path, *lines: str) -> PlanResult:
    """The plan of one job."""
    return make_plan([lines], root=ROOT, store=tmp_path / "store", machine=read_machine())


def softmax(**metadata: object) -> dict[str, object]:
    """Results of the C++ softmax, as we export them."""
    points = [(8, 1, False), (8, 2, False), (1, 1, True)]
    results = [
        result(64, 1, configuration={"LANES": lanes, "UNROLL": unroll, "ONLINE": online, "STREAM": False})
        for lanes, unroll, online in points
    ]
    return {**t4(kernel="softmax.cpp", **metadata), "results": results}


def test_a_kernel_that_is_known_by_its_measurements(tmp_path: Path) -> None:
    """Its space is theirs, all stages replay the same file, and the row says whose measurements they are."""
    path = written(tmp_path)
    made = planned(tmp_path, *RECORDED, f"hardware.recorded={path}")
    (task,) = made.plan.tasks
    row = task.row
    assert task.variants == {"toy": 8}
    assert row.recorded is not None and row.recorded.startswith("Some GPU, recorded in toy.json (")
    assert (row.device_present, row.flops, row.bytes, row.peaks) == (False, None, None, {})
    store = tmp_path / "store"
    generate = read_record(spec_path(store, "generate", row.generate), GenerateSpec)
    assert generate.implementations["toy"].tunables["block"].values == (64, 128, 256, 512)
    compiled = read_record(spec_path(store, "compile", row.compile), CompileSpec)
    profiled = read_record(spec_path(store, "profile", row.profile), ProfileSpec)
    assert compiled.recorded is not None and compiled.recorded == profiled.recorded
    assert compiled.recorded.implementation == "toy"
    assert str(path.resolve()) in made.files


def test_rules_and_defaults_of_a_t1_file(tmp_path: Path) -> None:
    """`kernel.space` names it; the measurements stay those of the other file."""
    t1 = tmp_path / "toy.T1.json"
    tuned = [
        {"Name": "block", "Type": "int", "Values": "[64, 128, 256, 512]", "Default": 128},
        {"Name": "unroll", "Type": "int", "Values": "[1, 2]", "Default": 1},
    ]
    rules = [{"Expression": "block * unroll <= 256", "Parameters": ["block", "unroll"]}]
    space = {"TuningParameters": tuned, "Conditions": rules}
    t1.write_text(json.dumps({"ConfigurationSpace": space, "KernelSpecification": {"KernelName": "toy"}}))
    made = planned(tmp_path, *RECORDED, f"hardware.recorded={written(tmp_path)}", f"kernel.space={t1}")
    (task,) = made.plan.tasks
    assert task.variants == {"toy": 5}
    spec = read_record(spec_path(tmp_path / "store", "generate", task.row.generate), GenerateSpec)
    assert spec.implementations["toy"].tunables["block"].default == 128


def test_our_own_results_replay_on_their_kernel(tmp_path: Path) -> None:
    """Values that nobody measured are left out, and rules whose limits are not known."""
    path = written(tmp_path, softmax(problem=[1536, 128]))
    made = planned(tmp_path, *SOFTMAX, f"hardware.recorded={path}")
    (task,) = made.plan.tasks
    spec = read_record(spec_path(tmp_path / "store", "generate", task.row.generate), GenerateSpec)
    (name,) = spec.implementations
    assert name == "cpp"
    assert spec.implementations["cpp"].tunables["LANES"].values == (1, 8)
    assert spec.implementations["cpp"].tunables["STREAM"].values == (False,)
    assert [each.rule for each in spec.implementations["cpp"].constraints] == [
        "LANES > 1 or UNROLL == 1",
        "LANES > 1 or not STREAM",
    ]
    assert task.row.flops is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (RECORDED, r"^hardware\.recorded: missing; expected the path of a T4 file.*docs/guide/replay\.md$"),
        (
            (*RECORDED, "hardware.recorded=absent.json"),
            r"^hardware\.recorded=absent\.json: there is no such file; expected the path of a T4",
        ),
        (
            (*RECORDED, "hardware.recorded=conf"),
            r"^hardware\.recorded=conf: is no file; expected the path of a T4",
        ),
        (
            (*RECORDED[:3], "hardware=cpu"),
            r"recorded is known by recorded measurements alone: hardware=recorded$",
        ),
    ],
)
def test_what_is_missing_is_told(lines: tuple[str, ...], message: str, tmp_path: Path) -> None:
    """One line with what to give."""
    with pytest.raises(ConfigError, match=message):
        planned(tmp_path, *lines)


def test_a_space_that_is_missing(tmp_path: Path) -> None:
    """What a space wants is a T1 file."""
    text = (
        r"^kernel\.space=absent\.json: there is no such file; expected the path of a T1 file, or 'recorded'"
    )
    with pytest.raises(ConfigError, match=text):
        planned(tmp_path, *RECORDED, f"hardware.recorded={written(tmp_path)}", "kernel.space=absent.json")


def test_results_of_something_else(tmp_path: Path) -> None:
    """Of another kernel, or of our kernel on another problem: no task, and the reason."""
    with pytest.raises(
        ConfigError, match="results of toy with the tunables block, unroll, and of no softmax"
    ):
        planned(tmp_path, *SOFTMAX, f"hardware.recorded={written(tmp_path)}")
    path = written(tmp_path, softmax(problem=[4, 4]))
    with pytest.raises(ConfigError, match="measured on the dimensions 4 4, not on rows=1536 cols=128"):
        planned(tmp_path, *SOFTMAX, f"hardware.recorded={path}")


def test_a_search_that_writes_sources(tmp_path: Path) -> None:
    """Nobody recorded what it would write."""
    lines = [line for line in RECORDED if not line.startswith("search=")]
    with pytest.raises(ConfigError, match="inductor writes sources, and nothing was recorded of those"):
        planned(tmp_path, *lines, "search=inductor", f"hardware.recorded={written(tmp_path)}")


def test_a_file_without_results(tmp_path: Path) -> None:
    """A space alone cannot be replayed."""
    path = written(tmp_path, {**t4(), "results": []})
    with pytest.raises(ConfigError, match="it has no results; expected the path of a T4 file"):
        planned(tmp_path, *RECORDED, f"hardware.recorded={path}")
