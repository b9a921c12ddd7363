"""A small project in which a test may change anything: a toy kernel, a CPU, two GPUs of one architecture."""

import functools
import shutil
from pathlib import Path
from typing import Any

from pipeline.plan.config.compose import Composed, Compositions
from pipeline.plan.config.groups import SETTINGS
from pipeline.plan.identity.import_closure import Code
from pipeline.plan.local_machine import Machine
from pipeline.plan.planner import PlanResult, make_plan
from pipeline.records.configuration.hardware import Hardware, Quantity
from pipeline.records.layout import spec_path
from pipeline.records.planning.planned_tasks import Plan, PlannedTask
from pipeline.records.planning.specs import AggregateSpec, CompileSpec, GenerateSpec, ProfileSpec, VerifySpec
from pipeline.records.record import Record, read_record
from tests.paths import ROOT

_read = functools.cache(Code)
_primaries: dict[tuple[tuple[str, bytes], ...], dict[tuple[str, ...], tuple[Composed, dict[str, Any]]]] = {}
"""Names and contents of all files with settings -> their compositions."""


def read_once(root: Path, *, kept: Path | None = None) -> Code:
    """The pipeline's code, of which each test's store would keep what it read for itself."""
    return _read(root)


CPU = Hardware(
    name="cpu",
    description="",
    kind="cpu",
    architecture="x86-64-v3-test",
    limits={
        "vector_bits": Quantity(value=256, unit="bit", source="test"),
        "l2_cache": Quantity(value=1 << 20, unit="byte", source="test"),
    },
    features=("avx2",),
    facts={"model": "Test CPU", "cores": "2", "threads": "2", "memory_bytes": "1"},
)
MACHINE = Machine(cpu=CPU)

KERNEL = """\
name: scale
description: Doubles.
category: test
dimensions:
  rows: tokens
  cols: hidden
tensors:
  x: {role: input, shape: [rows, cols]}
  y: {role: output, shape: [rows, cols]}
attributes:
  epilogue: none
reference: kernels.scale.reference:double
cost:
  flops: rows * cols
  bytes: 2 * rows * cols * itemsize
tolerance:
  magnitude: kernels.scale.reference:double
  reduction: "1"
  reason: one exact product
implementations:
  cpp:
    backend: cpp
    source: kernels/scale/scale.cpp
    entry: scale
    origin: test
    licence: Apache-2.0
    tunables:
      LANES:
        values: [1, 8]
        default: 8
        technique: vectorization
        "off": 1
      UNROLL:
        values: [1, 2, 4]
        default: 2
    constraints:
      - rule: LANES * 32 <= vector_bits
        reason: too wide
      - rule: LANES > 1 or UNROLL == 1
        reason: scalar code is not unrolled
  triton:
    backend: triton
    source: kernels/scale/scale_triton.py
    entry: launch
    origin: test
    licence: Apache-2.0
    tunables:
      num_warps:
        values: [4, 8]
        default: 4
    constraints:
      - rule: num_warps * warp_size <= threads_per_block
        reason: too many threads
"""

GPU = """\
name: {name}
description: A GPU.
kind: cuda
architecture: sm_90
limits:
  warp_size: {{value: 32, unit: threads, source: test}}
  threads_per_block: {{value: 1024, unit: threads, source: test}}
  l2_cache: {{value: {cache}, unit: byte, source: test}}
peaks:
  dram_bandwidth: {{value: {bandwidth}, unit: B/s, source: test}}
"""

FILES = {
    "conf/kernel/scale.yaml": KERNEL,
    "conf/hardware/cpu.yaml": "{name: cpu, description: c, kind: cpu, architecture: native, limits: {}}\n",
    "conf/hardware/local.yaml": (
        "{name: local, description: l, kind: cpu, architecture: native, limits: {}}\n"
    ),
    "conf/hardware/h100.yaml": GPU.format(name="h100", cache=50, bandwidth=3.0e12),
    "conf/hardware/h200.yaml": GPU.format(name="h200", cache=60, bandwidth=4.8e12),
    "conf/workload/small.yaml": (
        "{name: small, description: s, source: test, dtype: float32, dimensions: {tokens: 8, hidden: 64}}\n"
    ),
    "conf/workload/large.yaml": (
        "{name: large, description: l, source: test, dtype: float16, dimensions: {tokens: 64, hidden: 64}}\n"
    ),
    "conf/optimization/full.yaml": "{name: full, description: all}\n",
    "conf/optimization/scalar.yaml": "{name: scalar, description: no vectors, fixed: {LANES: 1}}\n",
    "conf/experiment/default.yaml": """\
# @package _global_
defaults:
  - override /verify: fast
experiment:
  name: default
  description: Both kinds.
  select:
    - {kernel: [scale], workload: [small, large], hardware: [cpu], optimization: [full]}
    - {kernel: [scale], workload: [small], hardware: [h100, h200], optimization: [full]}
""",
    "kernels/scale/reference.py": "def double(x):\n    return 2 * x\n",
    "kernels/scale/scale.cpp": '#include "../common.hpp"\nint scale() { return 0; }\n',
    "kernels/common.hpp": "// shared\n",
    "kernels/scale/scale_triton.py": "def launch(**arguments):\n    pass\n",
}
SPECS: dict[str, type[Record]] = {
    "generate": GenerateSpec,
    "compile": CompileSpec,
    "verify": VerifySpec,
    "profile": ProfileSpec,
    "aggregate": AggregateSpec,
}


class Project:
    """The small project in a folder; its settings (search, verify, …) are the real ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "artifacts"
        self.machine = MACHINE
        for group in ("search", "verify", "mutation", "profile", "tracking", "objective"):
            shutil.copytree(ROOT / "conf" / group, folder / "conf" / group)
        shutil.copy(ROOT / "conf" / "config.yaml", folder / "conf")
        for path, content in FILES.items():
            self.write(path, content)

    def write(self, path: str, content: str) -> None:
        """Make or replace a file."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that stands in a file exactly once."""
        text = (self.folder / path).read_text()
        assert text.count(old) == 1, f"{path}: {old!r} stands there {text.count(old)} times"
        self.write(path, text.replace(old, new))

    def make(self, *lines: str) -> PlanResult:
        """Make the plan without its cache."""
        return self.make_sweep(lines)

    def make_sweep(self, *jobs: tuple[str, ...]) -> PlanResult:
        """Make the plan of several jobs without its cache."""
        known = self.known()
        return make_plan(jobs, root=self.folder, store=self.store, machine=self.machine, known=known)

    def known(self) -> Compositions:
        """What Hydra made of the same settings for another project; options of the axes are read anew."""
        files = [self.folder / "conf" / "config.yaml"]
        for group in SETTINGS:
            files += (self.folder / "conf" / group).rglob("*.yaml")
        named = {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in files}
        known = Compositions()
        known.primaries = _primaries.setdefault(tuple(sorted(named.items())), {})
        return known

    def plan(self, *lines: str) -> Plan:
        """The same, the plan alone."""
        return self.make(*lines).plan

    def task(self, *lines: str) -> PlannedTask:
        """The one task of a plan."""
        (task,) = self.plan(*lines).tasks
        return task

    def keys(self, *lines: str) -> dict[str, str]:
        """Stage -> key, for a plan of one task."""
        plan = self.plan(*lines)
        (task,) = plan.tasks
        stages = ("generate", "compile", "verify", "profile")
        return {stage: getattr(task.row, stage) for stage in stages} | {"aggregate": plan.aggregate}

    def spec(self, stage: str, key: str) -> Record:
        """A spec that the plan wrote."""
        return read_record(spec_path(self.store, stage, key), SPECS[stage])
