"""A made-up experiment of many tasks and variants in a private checkout, with results of every stage.

    python -m tests.benchmarks.made_up OVERRIDE…      (in the checkout: fill its store)

One variant goes through the real stages; all others get copies of its records, with their own identities and
slightly different times, where the stages look for them: in the store. So a run finds all of its variants
there and makes the outputs of its jobs itself.
"""

import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from pipeline.plan.plan_cache import current_plan
from pipeline.records.layout import entry_path, spec_path
from pipeline.records.planning.planned_tasks import PlannedTask
from pipeline.records.planning.specs import CompileSpec, GenerateSpec, ProfileSpec, VerifySpec
from pipeline.records.record import Record, read_record, to_json
from pipeline.records.results.compiled import CompileOutput, CompileRecord
from pipeline.records.results.profiled import Profiled, ProfileOutput, ProfileRecord
from pipeline.records.results.variant import Variant
from pipeline.records.results.verified import VerifyOutput, VerifyRecord
from pipeline.stages import compile as compiling
from pipeline.stages import generate as generating
from pipeline.stages import profile as profiling
from pipeline.stages import verify as verifying
from pipeline.store.entries import RECORD
from tests.end_to_end.checkout import Checkout

EXPERIMENT = "many"
ROOT = Path("artifacts")
KERNEL = """\
name: {name}
description: Doubles; its tunables choose nothing.
category: test
dimensions: {{rows: tokens, cols: hidden}}
tensors:
  x: {{role: input, shape: [rows, cols]}}
  y: {{role: output, shape: [rows, cols]}}
reference: kernels.made_up.reference:double
cost: {{flops: rows * cols, bytes: 2 * rows * cols * itemsize}}
tolerance: {{magnitude: kernels.made_up.reference:double, reduction: "1", reason: one exact product}}
implementations:
  cpp:
    backend: cpp
    source: kernels/made_up/made_up.cpp
    entry: made_up
    origin: test
    licence: Apache-2.0
    tunables:
{tunables}
    constraints:
      - {{rule: A < {values} or {others}, reason: one more variant where a value more is declared}}
"""
TUNABLE = "      {name}: {{values: {values}, default: 0}}\n"
SOURCE = """\
#include <cstdint>
extern "C" int made_up(const float* x, float* y, std::int64_t rows, std::int64_t cols) {
    for (std::int64_t i = 0; i < rows * cols; ++i) y[i] = 2 * x[i];
    return 0;
}
"""
REFERENCE = "def double(x):\n    return 2 * x\n"
SETTINGS = """\
# @package _global_
defaults:
  - override /verify: fast
  - override /profile: quick
experiment:
  name: {name}
  description: Made up.
  select:
    - kernel: [{kernels}]
      workload: [{workloads}]
      hardware: [cpu]
      optimization: [full]
profile: {{baselines: [eager]}}
"""
WORKLOAD = """\
{{name: {name}, description: m, source: test, dtype: float32, dimensions: {{tokens: {tokens}, hidden: 256}}}}
"""


class Size(Record, frozen=True, kw_only=True):
    """How much there is."""

    kernels: int
    workloads: int
    tunables: int
    """Of each kernel."""
    values: int
    """Of each tunable."""

    @property
    def tasks(self) -> int:
        """Each kernel on each workload."""
        return self.kernels * self.workloads

    @property
    def variants(self) -> int:
        """Of all tasks."""
        return self.tasks * self.values**self.tunables


def declare(checkout: Checkout, size: Size) -> None:
    """Write the experiment's yaml files and sources."""
    kernels = [f"made_up_{number:03}" for number in range(size.kernels)]
    workloads = [f"made_up_{number:03}" for number in range(size.workloads)]
    names = [chr(ord("A") + number) for number in range(size.tunables)]
    values = list(range(size.values))
    conf = checkout.folder / "conf"
    for name in kernels:
        text = KERNEL.format(
            name=name,
            values=size.values,
            tunables="".join(TUNABLE.format(name=each, values=values) for each in names).rstrip(),
            others=f"({' and '.join(f'{each} == 0' for each in names[1:])})",
        )
        (conf / "kernel" / f"{name}.yaml").write_text(text)
    for number, name in enumerate(workloads):
        (conf / "workload" / f"{name}.yaml").write_text(WORKLOAD.format(name=name, tokens=64 + number))
    settings = SETTINGS.format(name=EXPERIMENT, kernels=", ".join(kernels), workloads=", ".join(workloads))
    (conf / "experiment" / f"{EXPERIMENT}.yaml").write_text(settings)
    sources = checkout.folder / "kernels" / "made_up"
    sources.mkdir()
    (sources / "made_up.cpp").write_text(SOURCE)
    (sources / "reference.py").write_text(REFERENCE)


def one_more_value(checkout: Checkout, size: Size) -> None:
    """Declare one more value of a tunable of the first kernel: one more variant in each of its tasks."""
    path = checkout.folder / "conf" / "kernel" / "made_up_000.yaml"
    text = path.read_text()
    before, after = (f"A: {{values: {list(range(count))}" for count in (size.values, size.values + 1))
    assert text.count(before) == 1, text
    path.write_text(text.replace(before, after))


class Copies:
    """Makes records of variants after those of one that went through the stages."""

    def __init__(self, task: PlannedTask) -> None:
        self._chain = real_chain(task)

    def of(self, task: PlannedTask) -> Iterator[tuple[CompileRecord, VerifyRecord, ProfileRecord]]:
        """The records of all variants of a task, each where its stage looks for it."""
        verifies = read_record(spec_path(ROOT, "verify", task.row.verify), VerifySpec)
        profiles = read_record(spec_path(ROOT, "profile", task.row.profile), ProfileSpec)
        for compiled in self.compiled(task):
            verified = self._verified(compiled.variant, verifying.plan_of(verifies, compiled).entry)
            profiled = self._profiled(compiled.variant, profiling.entry_digest(profiles, compiled, {}))
            yield compiled, verified, profiled

    def compiled(self, task: PlannedTask) -> Iterator[CompileRecord]:
        """Those of compile alone."""
        spec = read_record(spec_path(ROOT, "compile", task.row.compile), CompileSpec)
        for variant in variants_of(task):
            entry = compiling.entry_digest(spec, variant)
            yield msgspec.structs.replace(self._chain[0], variant=variant, entry=entry)

    def outputs(self, task: PlannedTask) -> Iterator[tuple[VerifyRecord, ProfileRecord]]:
        """Those of verify and profile for their outputs, where nobody looks for them in the store."""
        for variant in variants_of(task):
            identity = variant.id
            yield self._verified(variant, identity), self._profiled(variant, identity)

    def _verified(self, variant: Variant, entry: str) -> VerifyRecord:
        return msgspec.structs.replace(self._chain[1], variant=variant, entry=entry)

    def _profiled(self, variant: Variant, entry: str) -> ProfileRecord:
        replace, profiled = msgspec.structs.replace, self._chain[2]
        result = profiled.result
        assert isinstance(result, Profiled)
        factor = 1 + zlib.crc32(entry.encode()) % 1000 / 5000
        samples = tuple(sample * factor for sample in result.timing.samples)
        median = result.timing.median
        interval = replace(
            median, value=median.value * factor, low=median.low * factor, high=median.high * factor
        )
        timing = replace(result.timing, samples=samples, median=interval)
        return replace(profiled, variant=variant, entry=entry, result=replace(result, timing=timing))


def variants_of(task: PlannedTask) -> tuple[Variant, ...]:
    """What generate proposes."""
    key = task.row.generate
    spec = read_record(spec_path(ROOT, "generate", key), GenerateSpec)
    return generating.generate(spec, [], key=key, round_number=0).variants


def real_chain(task: PlannedTask) -> tuple[CompileRecord, VerifyRecord, ProfileRecord]:
    """The first variant of a task through the real stages, in a store of its own."""
    row, folder = task.row, Path("real")
    generated = folder / "generated.json"
    key = row.generate
    spec = read_record(spec_path(ROOT, "generate", key), GenerateSpec)
    made = generating.generate(spec, [], key=key, round_number=0)
    folder.mkdir(exist_ok=True)
    generated.write_bytes(to_json(msgspec.structs.replace(made, variants=made.variants[:1])))
    compiled, verified, profiled = (folder / f"{stage}.json" for stage in ("compile", "verify", "profile"))
    _stage("compile", row.compile, f"--variants={generated}", f"--out={compiled}")
    _stage("verify", row.verify, f"--compiled={compiled}", f"--out={verified}")
    _stage("profile", row.profile, f"--compiled={compiled}", f"--verified={verified}", f"--out={profiled}")
    return (
        read_record(compiled, CompileOutput).records[0],
        read_record(verified, VerifyOutput).records[0],
        read_record(profiled, ProfileOutput).records[0],
    )


def _stage(name: str, key: str, *arguments: str) -> None:
    command = [sys.executable, "-m", f"pipeline.stages.{name}", f"--spec={spec_path(ROOT, name, key)}"]
    subprocess.run([*command, *arguments, f"--root={ROOT}"], check=True)


def put(stage: str, record: CompileRecord | VerifyRecord | ProfileRecord) -> None:
    """Where the stage looks for it."""
    folder = entry_path(ROOT, stage, record.entry)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORD).write_bytes(to_json(record))


def main() -> None:
    """Fill the store of this checkout for the plan of these overrides."""
    tasks = current_plan(tuple(sys.argv[1:]), root=Path.cwd(), store=ROOT).tasks
    copies = Copies(tasks[0])
    count = 0
    for task in tasks:
        for records in copies.of(task):
            for stage, record in zip(("compile", "verify", "profile"), records, strict=True):
                put(stage, record)
            count += 1
    print(f"{len(tasks)} tasks, {count} variants")


if __name__ == "__main__":
    main()
