"""`kernelmill judge`: folders in, verdicts out, through Snakemake and again from the store."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.execution.judging_run import collect
from pipeline.execution.workflow import ROOT
from pipeline.plan.judging import JudgingRequest, plan_judging
from pipeline.records.results.judged import VIEWS
from pipeline.verify.candidates.verdict_table import COLUMNS
from tests.end_to_end.checkout import Checkout
from tests.verify.harness.problems import SCALED_SOFTMAX

TRITON = """
import torch, triton
import triton.language as tl

@triton.jit
def kernel(x, w, y, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * n + at, mask=at < n, other=float("-inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    weight = tl.load(w + at, mask=at < n, other=0.0)
    tl.store(y + row * n + at, powers / tl.sum(powers, axis=0) * weight, mask=at < n)

class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(x.shape[0],)](x, self.weight, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""
CTYPES = '''
import ctypes, subprocess, torch

SOURCE = """
#include <cmath>
extern "C" void scale(const float* x, float* y, long n) { for (long i = 0; i < n; i++) y[i] = 2.0f * x[i]; }
"""

def build():
    open("scale.cpp", "w").write(SOURCE)
    subprocess.run(["g++", "-O2", "-shared", "-fPIC", "scale.cpp", "-o", "./scale.so"], check=True)
    return ctypes.CDLL("./scale.so")

LIBRARY = build()

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        pointer = lambda tensor: ctypes.c_void_p(tensor.data_ptr())
        LIBRARY.scale(pointer(x), pointer(y), ctypes.c_long(x.numel()))
        return y
'''
DOUBLE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return 2 * x
n = 3000
def get_inputs(): return [torch.randn(n)]
def get_init_inputs(): return []
"""
TORCH = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return 2 * x\n"
EXPECTED = {
    ("double", "by_ctypes"): "passed",
    ("double", "by_torch"): "tampered",
    ("double", "not_python"): "compile_error",
    ("no_model", "right"): "bad_problem",
    ("softmax", "no_weight"): "wrong_value",
    ("softmax", "right"): "passed",
    ("softmax", "without_class"): "compile_error",
}


def problems(folder: Path) -> Path:
    """Three problems, one of them bad, with seven candidates."""
    sources = {
        "double": (DOUBLE, {"by_ctypes": CTYPES, "by_torch": TORCH, "not_python": "def"}),
        "no_model": ("def get_inputs(): ...", {"right": TORCH}),
        "softmax": (
            SCALED_SOFTMAX,
            {
                "right": TRITON,
                "no_weight": TRITON.replace(" * weight, mask", ", mask"),
                "without_class": "import torch",
            },
        ),
    }
    for name, (source, solutions) in sources.items():
        (folder / name / "solutions").mkdir(parents=True)
        (folder / name / "problem.py").write_text(source)
        for solution, text in solutions.items():
            (folder / name / "solutions" / f"{solution}.py").write_text(text)
    return folder


def judge(checkout: Checkout, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, in a checkout of its own."""
    return subprocess.run(
        [sys.executable, "-m", "pipeline", "judge", *arguments],
        cwd=checkout.folder,
        env=checkout.environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def rows(path: Path) -> list[dict[str, str]]:
    """The table."""
    with path.open() as stream:
        return list(csv.DictReader(stream))


@pytest.mark.slow
def test_from_folder_to_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every candidate has its row; bad input is one line each; a second run asks the store."""
    checkout = Checkout(tmp_path / "checkout")
    folder, out = problems(tmp_path / "problems"), tmp_path / "verdicts.csv"
    ended = judge(checkout, str(folder), "--out", str(out))
    assert ended.returncode == 0, ended.stderr
    table = rows(out)
    assert tuple(table[0]) == COLUMNS
    assert {(row["problem"], row["solution"]): row["outcome"] for row in table} == EXPECTED
    found = {(row["problem"], row["solution"]): row for row in table}
    assert found["softmax", "right"]["where"] == "interpreter"
    assert f"kernelmill judge --repeat {found['softmax', 'no_weight']['id']} · log" in ended.stdout
    again = judge(checkout, "--repeat", found["softmax", "no_weight"]["id"])
    assert "No CUDA runtime" not in again.stderr
    assert again.returncode == 1, again.stderr
    said = dict(line.split(maxsplit=1) for line in again.stdout.splitlines())
    assert said["verdict"] == said["now"], "the same element of the same inputs"
    refused = judge(checkout, "--repeat", found["softmax", "right"]["id"])
    assert refused.returncode == 2
    assert "passed" in refused.stderr
    assert found["double", "by_ctypes"]["where"] == "host"
    assert 0 < float(found["softmax", "right"]["share"]) < 1
    assert "value" in found["softmax", "right"]["checks"].split(";")
    assert int(found["softmax", "right"]["peak_memory"]) > 2**20
    assert all("\n" not in row["reason"] for row in table)
    assert f"{folder}/no_model/problem.py: no class Model, expected Model, get_inputs" in ended.stderr
    assert f"{folder}/double/solutions/not_python.py: line 1: syntax error" in ended.stderr
    *_, counts, on_host, interpreted, fragile, _ = ended.stdout.splitlines()
    assert counts.startswith("7 candidates: 2 passed, ")
    assert on_host == "passed    double/by_ctypes (ran on: host)"
    assert interpreted == "passed    softmax/right (ran on: interpreter)"
    assert fragile == f"fragile   softmax/right: {VIEWS}"

    entries = checkout.entries("judge")
    assert len(entries) == 5  # what a glance told is not stored
    extra = folder / "double" / "solutions" / "zeros.py"
    extra.write_text(TORCH.replace("2 * x", "torch.zeros_like(x)"))
    again = judge(checkout, str(folder), "--out", str(out))
    assert again.returncode == 0
    assert {row["outcome"] for row in rows(out) if row["solution"] == "zeros"} == {"wrong_value"}
    assert entries.items() <= checkout.entries("judge").items()
    assert len(checkout.entries("judge")) == 6

    monkeypatch.chdir(checkout.folder)
    for output in Path("artifacts/judge").glob("*.json"):
        output.unlink()  # as after Ctrl-C, before a problem's job has ended
    there = collect(plan_judging(JudgingRequest(folder=folder), root=Path(), store=ROOT))
    assert {(each.problem, each.solution): each.outcome for each in there} == {
        **EXPECTED,
        ("double", "zeros"): "wrong_value",
    }


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nothing_here"], "error: nothing_here: does not exist, expected a folder of problems"),
        ([".", "--hardware", "h2000"], "error: --hardware h2000: unknown hardware 'h2000'"),
        ([".", "--verify", "slack"], "error: --verify slack: unknown verify 'slack'"),
        ([".", "--out", "no/such/folder/x.csv"], "expected a file in a folder that exists"),
        ([".", "--only", "sofmax*"], "error: --only sofmax*: matches nothing in "),
        (
            [".", "--only", "*", "--submission", "x"],
            "error: --only: a part of the candidates is no submission",
        ),
        ([".", "--out", "/proc/x.csv"], "error: --out /proc/x.csv: cannot be written: "),
    ],
)
def test_wrong_command_line(
    arguments: list[str], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 and one line, before anything runs."""
    folder = problems(tmp_path / "problems")
    code = main(["judge", *[str(folder) if part == "." else part for part in arguments]])
    assert code == 2
    assert line in capsys.readouterr().err
