"""Import of flashinfer-bench's data sets, and export of verdicts as its traces."""

import importlib.util
import json
import sys

import pytest
import torch

from pipeline.interop.problem_sets import converted_folder
from pipeline.interop.problem_sets.flashinfer import conversion
from pipeline.interop.problem_sets.flashinfer.data_set import is_data_set
from pipeline.interop.problem_sets.flashinfer.solution_traces import write_traces
from pipeline.records.errors import ConfigError
from pipeline.records.outcome import Outcome
from pipeline.records.results.judged import Verdict
from pipeline.sandbox.models.model_problem import ModelProblem, ProblemError
from pipeline.verify.candidates.kernelbench import scan
from tests.interop.problem_sets.flashinfer_data_set import DEFINITION, data_set, safetensors, workload, write


def convert(folder, out):
    """Into a folder of problems."""
    into = converted_folder.ConvertedFolder(folder, out)
    conversion.convert(into)
    into.finished()
    return out


@pytest.fixture
def imported(tmp_path):
    """The small data set as problems."""
    return convert(data_set(tmp_path / "set"), tmp_path / "out")


@pytest.fixture(autouse=True)
def _own_modules(monkeypatch):
    """Every problem has a reference of its own, under one name."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("definition_reference", None)


def test_the_layout_is_recognised(tmp_path):
    """Theirs, and not a folder of problems."""
    assert is_data_set(data_set(tmp_path / "set"))
    assert not is_data_set(convert(tmp_path / "set", tmp_path / "out"))


def test_a_definition_becomes_a_problem(imported):
    """Model, inputs of the largest workload, free axes as sizes, all workloads as groups, smallest first."""
    (folder,) = scan(imported)
    assert (folder.name, folder.failure) == ("rmsnorm_d32", None)
    problem = ModelProblem(imported / "rmsnorm_d32/problem.py")
    assert {size.name: size.value for size in problem.sizes} == {"size_batch": 40}
    x, weight, eps = problem.declared.inputs(1)
    assert (x.shape, weight.shape, eps) == ((40, 32), (32,), 1e-6)
    assert [group[0].shape[0] for group in problem.declared.groups(1)] == [3, 40]
    assert problem.variant({"size_batch": 7}).inputs(1)[0].shape == (7, 32)
    model = problem.declared.model(1, [])
    expected = torch.nn.functional.rms_norm(x, (32,), weight, eps)
    torch.testing.assert_close(model(x, weight, eps), expected)


def test_inputs_follow_the_seed(imported):
    """Fresh draws, reproducible."""
    declared = ModelProblem(imported / "rmsnorm_d32/problem.py").declared
    assert torch.equal(declared.inputs(5)[0], declared.inputs(5)[0])
    assert not torch.equal(declared.inputs(5)[0], declared.inputs(6)[0])


def test_tensors_from_files(tmp_path):
    """Read from the data set; axes are then what the files say, so there are no sizes to vary."""
    folder = data_set(tmp_path / "set")
    values = torch.arange(32, dtype=torch.bfloat16)
    raw = bytes(values.view(torch.uint8).tolist())
    safetensors(folder / "blob/w.safetensors", "w", [32], raw, "BF16")
    described = {"type": "safetensors", "path": "blob/w.safetensors", "tensor_key": "w"}
    write(folder, "workloads/rmsnorm/rmsnorm_d32.jsonl", workload("file", 4, weight=described))
    convert(folder, tmp_path / "out")
    problem = ModelProblem(tmp_path / "out/rmsnorm_d32/problem.py")
    assert problem.sizes == ()
    assert torch.equal(problem.declared.inputs(1)[1], values)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"x": {"type": "file"}}, "expected random, scalar or safetensors"),
        ({"weight": {"type": "safetensors", "path": "none", "tensor_key": "w"}}, "FileNotFoundError"),
    ],
)
def test_inputs_that_cannot_be_made(tmp_path, change, text):
    """One line that says which."""
    folder = data_set(tmp_path / "set")
    write(folder, "workloads/rmsnorm/rmsnorm_d32.jsonl", workload("odd", 4, **change))
    problem = ModelProblem(convert(folder, tmp_path / "out") / "rmsnorm_d32/problem.py")
    with pytest.raises(ProblemError, match=text):
        problem.declared.inputs(1)


def test_what_cannot_be_imported_says_so(tmp_path):
    """A broken definition, one without workloads, one with an unknown type: problems of their own."""
    folder = data_set(tmp_path / "set")
    (folder / "definitions/broken.json").write_text("{")
    write(folder, "definitions/lonely.json", DEFINITION | {"name": "lonely"})
    out = convert(folder, tmp_path / "out")
    assert [problem.name for problem in scan(out)] == ["broken", "lonely", "rmsnorm_d32"]
    for name, text in (("broken", "not a definition"), ("lonely", "has no workload")):
        with pytest.raises(ProblemError, match=text):
            ModelProblem(out / name / "problem.py")
    ffi = (out / "rmsnorm_d32/solutions/ffi.py").read_text()
    assert "cuda through tvm-ffi cannot be judged" in ffi


def test_lines_that_are_no_workloads(tmp_path):
    """File and line."""
    folder = data_set(tmp_path / "set")
    (folder / "workloads/rmsnorm/rmsnorm_d32.jsonl").write_text('{"definition": "x"}\n')
    with pytest.raises(ConfigError, match=r"rmsnorm_d32.jsonl:1: not a workload"):
        convert(folder, tmp_path / "out")


def test_no_data_set(tmp_path):
    """One line."""
    with pytest.raises(ConfigError, match="holds no definitions"):
        convert(tmp_path, tmp_path / "out")


def test_converting_again_changes_nothing(tmp_path, imported):
    """Files keep their time, so that what was judged stays judged."""
    before = {path: path.stat().st_mtime_ns for path in imported.rglob("*.py")}
    convert(tmp_path / "set", imported)
    assert {path: path.stat().st_mtime_ns for path in imported.rglob("*.py")} == before


def test_candidates_have_the_interface(imported):
    """Destination passing style allocates as the definition says; several files are imported together."""
    for name in ("right", "in_parts"):
        path = imported / "rmsnorm_d32/solutions" / f"{name}.py"
        specification = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        assert isinstance(module.ModelNew(), torch.nn.Module)
    text = (imported / "rmsnorm_d32/solutions/right.py").read_text()
    assert "_out0 = _torch.empty([x.shape[0], 32], dtype=_torch.float32, device=x.device)" in text
    assert "run(x, weight, eps, _out0)" in text
    sys.modules.pop("parts", None)


def test_verdicts_become_traces(tmp_path, imported):
    """A line for each workload; statuses of theirs, our outcome beside them, nothing that nobody measured."""
    verdicts = [
        Verdict(problem="rmsnorm_d32", solution="right", outcome=Outcome.PASSED, share=0.25, device="cpu"),
        Verdict(problem="rmsnorm_d32", solution="wrong", outcome=Outcome.TAMPERED, reason="cached"),
        Verdict(problem="rmsnorm_d32", solution="unknown", outcome=Outcome.PASSED),
    ]
    assert write_traces(tmp_path / "set", verdicts, tmp_path / "traces.jsonl") == 4
    lines = [json.loads(line) for line in (tmp_path / "traces.jsonl").read_text().splitlines()]
    assert [line["workload"]["uuid"] for line in lines] == ["small", "large", "small", "large"]
    passed, tampered = lines[0]["evaluation"], lines[2]["evaluation"]
    assert passed["status"] == "PASSED"
    assert passed["correctness"]["extra"]["share_of_bound"] == 0.25
    assert passed["performance"] is None
    assert (tampered["status"], tampered["correctness"]) == ("RUNTIME_ERROR", None)
    assert tampered["log"] == "tampered: cached"
    assert tampered["environment"]["hardware"] == "unknown"
