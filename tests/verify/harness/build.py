"""Specs and compiled records for tests of the gate, as config and compile would make them."""

import subprocess
from pathlib import Path

from pipeline.records.configuration.hardware import Target
from pipeline.records.configuration.kernel import Implementation, Tensor, Tolerance
from pipeline.records.configuration.stage_settings import Verify
from pipeline.records.layout import entry_path
from pipeline.records.planning.problem import Problem
from pipeline.records.planning.specs import Build, VerifySpec
from pipeline.records.provenance import Provenance
from pipeline.records.record import digest_bytes
from pipeline.records.results.compiled import Compiled, CompileRecord, StaticFacts
from pipeline.records.results.variant import Variant

SETTINGS = Verify(
    name="test",
    description="small",
    seeds=1,
    distributions=("normal", "large", "small", "one_signed", "ties", "special", "constant"),
    edge_shapes=8,
    inputs_per_shape=1,
    elements_at_most=4096,
    interpreter_elements_at_most=2048,
    repetitions=2,
    elsewhere="first",
    protect="first",
    settle_seconds=0.005,
    time_limit=20.0,
    memory_limit=512 << 20,
    output_limit=1 << 20,
)
PROBLEM = Problem(
    kernel="softmax",
    dimensions={"rows": 64, "cols": 256},
    tensors={
        "x": Tensor(role="input", shape=("rows", "cols"), dtype="float32", layout="row_strided"),
        "y": Tensor(role="output", shape=("rows", "cols"), dtype="float32"),
    },
    scalars={},
    attributes={},
    element="float32",
)
TOLERANCE = Tolerance(
    magnitude="kernels.softmax.reference:magnitude",
    reduction="cols + 8",
    reason="see conf/kernel/softmax.yaml",
)
IMPLEMENTATION = Implementation(
    backend="cpp", source="kernels/softmax/softmax.cpp", entry="softmax", origin="test", licence="Apache-2.0"
)
TARGET = Target(kind="cpu", architecture="x86_64", limits={})
BUILD = Build(code="code", toolchain={})
PROVENANCE = Provenance(created="2026-01-01T00:00:00+00:00", host="host", toolchain={}, code="code")


def spec(**changes: object) -> VerifySpec:
    """A VerifySpec for softmax in C++ on this machine."""
    fields: dict = {
        "parent": "parent",
        "problem": PROBLEM,
        "implementations": {"cpp": IMPLEMENTATION},
        "reference": "kernels.softmax.reference:reference",
        "reference_digest": "digest",
        "tolerance": TOLERANCE,
        "deterministic": True,
        "special_values": True,
        "target": TARGET,
        "device_present": True,
        "settings": SETTINGS,
        "builds": {"cpp": BUILD, "triton": BUILD},
    }
    return VerifySpec(**(fields | changes))


def variant(source: str, **changes: object) -> Variant:
    """A variant of a source."""
    fields: dict = {
        "kernel": "softmax",
        "implementation": "cpp",
        "backend": "cpp",
        "source_digest": digest_bytes(source.encode()),
        "attributes": {},
        "tunables": {},
    }
    return Variant(**(fields | changes))


def compile_source(source: str, root: Path) -> CompileRecord:
    """Build a shared library into a compile entry."""
    entry = digest_bytes(source.encode())
    folder = entry_path(root, "compile", entry)
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "kernel.so"
    if not library.exists():
        (folder / "kernel.cpp").write_text(source)
        command = [
            "g++",
            "-O1",
            "-std=c++17",
            "-shared",
            "-fPIC",
            "-o",
            str(library),
            str(folder / "kernel.cpp"),
        ]
        subprocess.run(command, check=True, capture_output=True)
    compiled = Compiled(
        artifact=library.name,
        artifact_digest=digest_bytes(library.read_bytes()),
        functions=("softmax",),
        facts=StaticFacts(code_bytes=1),
        files=(library.name,),
    )
    return CompileRecord(
        variant=variant(source), entry=entry, result=compiled, seconds=0.0, provenance=PROVENANCE
    )
