"""CUDA C++ for an absent device: emulated, recorded as that, and wrong kernels end as their outcome."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pipeline.backends.c_sources import copy_sources, source_files
from pipeline.backends.cuda.compilation import SOURCES
from pipeline.records.layout import entry_path
from pipeline.records.outcome import Failure
from pipeline.records.planning.specs import VerifySpec
from pipeline.records.record import read_record, to_json
from pipeline.records.results.compiled import Compiled, CompileOutput, CompileRecord, StaticFacts
from pipeline.records.results.verified import Verified, VerifyOutput, VerifyRecord
from tests.backends.cuda.cuda_jobs import ROOT, kernel, target
from tests.selection import selected
from tests.verify.harness.build import BUILD, PROVENANCE, SETTINGS, spec, variant

pytestmark = pytest.mark.slow
SOFTMAX = "kernels/softmax/softmax.cu"
CHANGES = {
    "right": ("", ""),
    "no barrier": ("    __syncthreads();\n", ""),
    "maximum of the first half": ("distance = 16", "distance = 8"),
    "one row too many": ("number < rows ? cols : 0", "cols"),
    "wide loads anywhere": ("is_aligned(from) && is_aligned(to)", "true"),
    "writes its input": ("row_softmax(row);", "row_softmax(row); const_cast<Element*>(from)[0] = Element{};"),
    "half a warp meets": (
        "if (WARPS == 1) return",
        "if (threadIdx.x < 16) __syncwarp(); if (WARPS == 1) return",
    ),
    "not emulated": ("if (WARPS == 1) return", 'asm("griddepcontrol.wait;"); if (WARPS == 1) return'),
}
EXPECTED = {
    "no barrier": ("nondeterministic", "data race"),
    "maximum of the first half": ("wrong_value", "y["),
    "one row too many": ("out_of_bounds", ""),
    "wide loads anywhere": ("launch_error", "a misaligned access"),
    "writes its input": ("input_mutated", "x"),
    "half a warp meets": ("launch_error", "emulated: deadlock"),
    "not emulated": ("launch_error", "griddepcontrol_wait"),
}
SMALL = msgspec.structs.replace(
    SETTINGS,
    distributions=("normal", "large", "special"),
    edge_shapes=5,
    time_limit=60.0,
    memory_limit=1 << 30,
)


def record_of(name: str, root: Path) -> CompileRecord:
    """What compile would have left of the changed source, without the cubin that no device here runs."""
    old, new = CHANGES[name]
    checkout, entry = root / "checkout" / name, name.replace(" ", "-")
    implementation = kernel("softmax").implementations["cuda"]
    copy_sources(source_files(implementation, ROOT), ROOT, checkout)
    text = (checkout / SOFTMAX).read_text()
    assert old in text
    (checkout / SOFTMAX).write_text(text.replace(old, new, 1))
    folder = entry_path(root, "compile", entry)
    copy_sources(source_files(implementation, checkout), checkout, folder / SOURCES)
    compiled = Compiled(
        artifact="kernel.cubin", artifact_digest="", functions=(), facts=StaticFacts(code_bytes=1), files=()
    )
    made = variant(
        name,
        implementation="cuda",
        backend="cuda",
        tunables={"WARPS": 4, "ROWS": 4, "VECTORIZE": True, "ONLINE": True},
    )
    return CompileRecord(variant=made, entry=entry, result=compiled, seconds=0.0, provenance=PROVENANCE)


def judged(there: VerifySpec, records: list[CompileRecord], root: Path) -> tuple[VerifyRecord, ...]:
    """The stage as a command of its own."""
    files = {"--spec": root / "spec.json", "--compiled": root / "compiled.json", "--out": root / "out.json"}
    files["--spec"].write_bytes(to_json(there))
    files["--compiled"].write_bytes(to_json(CompileOutput(key="c", round=0, records=tuple(records))))
    command = [sys.executable, "-m", "pipeline.stages.verify", "--root", str(root), "--workers", "2"]
    arguments = [str(part) for pair in files.items() for part in pair]
    ended = subprocess.run([*command, *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    assert "verify softmax for sm_90 in the emulator" in ended.stderr
    return read_record(files["--out"], VerifyOutput).records


@pytest.fixture(scope="module")
def verdicts(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, VerifyRecord]:
    """The sources of the selected tests, judged in one job."""
    root = tmp_path_factory.mktemp("verify")
    there = spec(
        target=target("h200"),
        device_present=False,
        settings=SMALL,
        implementations={"cuda": kernel("softmax").implementations["cuda"]},
        builds={"cuda": BUILD},
    )
    wanted = ["right", *(name for name in EXPECTED if name in selected(request, "name"))]
    records = judged(there, [record_of(name, root) for name in wanted], root)
    return dict(zip(wanted, records, strict=True))


def test_right_kernel_passes_in_the_emulation(verdicts: dict[str, VerifyRecord]):
    """Every check ran, and the record says where."""
    record = verdicts["right"]
    assert isinstance(record.result, Verified), record.result
    assert record.where == "emulator"
    assert 0 < record.result.worst_share <= 1
    assert record.result.differing == 0 < record.result.compared
    assert any(shape["cols"] == 1 for shape in record.shapes)


@pytest.mark.parametrize("name", EXPECTED)
def test_wrong_kernels_end_as_their_outcome(verdicts: dict[str, VerifyRecord], name: str):
    """Values, bounds, inputs, alignment, threads that do not meet, and what the emulation does not know."""
    result = verdicts[name].result
    assert isinstance(result, Failure), f"{name} passed"
    outcome, text = EXPECTED[name]
    assert (result.outcome, verdicts[name].where) == (outcome, "emulator"), result.reason
    assert text in result.reason
