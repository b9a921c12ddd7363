"""What the gate costs: seconds of verify per variant, against one call and one naive comparison.

    python -m tests.benchmarks.gate [--variants 4] [--kernels softmax matmul] [--verify standard]

For each kernel: plan, generate and compile into a temporary store, then verify with one candidate at a time.
The naive check has the inputs of verify's first case: one launch, the reference in the inputs' own type, one
`torch.allclose`, all in one process that is already there. Prints Markdown tables. Run it on a quiet machine.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pipeline.records.layout import spec_path
from pipeline.records.planning.specs import VerifySpec
from pipeline.records.record import Record, read_record
from pipeline.records.results.verified import Verified, VerifyOutput, VerifyRecord
from pipeline.verify.harness.planning.preparation import where_run
from tests.benchmarks.chain import run_chain
from tests.paths import ROOT

KERNELS = ("softmax", "softmax_backward", "rms_norm", "rms_norm_backward", "matmul", "matmul_bias_gelu")
TARGETS = ("cpu", "h200")


class Row(Record, frozen=True, kw_only=True, eq=False):
    """One kernel on one target."""

    kernel: str
    where: str
    records: tuple[VerifyRecord, ...]
    naive: float
    """Seconds."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.gate", description=__doc__)
    parser.add_argument("--kernels", nargs="+", default=KERNELS)
    parser.add_argument("--targets", nargs="+", default=TARGETS)
    parser.add_argument("--variants", type=int, default=4, help="of each kernel and target")
    parser.add_argument("--verify", default="standard", help="the preset")
    options = parser.parse_args()
    rows = [row for kernel in options.kernels for row in _rows(kernel, options)]
    load = f"Load of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."
    print("\n".join([*_totals(rows), "", *_checks(rows), "", load]))


def _rows(kernel: str, options: argparse.Namespace) -> Iterator[Row]:
    for target in options.targets:
        with tempfile.TemporaryDirectory(prefix="km-") as store:
            yield _measure(kernel, target, options, Path(store))


def _measure(kernel: str, target: str, options: argparse.Namespace, store: Path) -> Row:
    overrides = (
        f"kernel={kernel} workload=bert_base hardware={target} optimization=full verify={options.verify}"
        f" search=random search.variants_per_round={options.variants} tracking=disabled"
    )
    task, outputs = run_chain(overrides, store)
    spec = spec_path(store, "verify", task.row.verify)
    command = [sys.executable, "-m", "tests.benchmarks.naive", *map(str, (spec, outputs["compile"], store))]
    naive = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout
    return Row(
        kernel=kernel,
        where=where_run(read_record(spec, VerifySpec)),
        records=read_record(outputs["verify"], VerifyOutput).records,
        naive=float(naive.splitlines()[-1]),
    )


def _totals(rows: list[Row]) -> Iterator[str]:
    """The first variant pays for the expected values, which the further ones share."""
    yield "| kernel | where | calls | naive check | first variant | further variants | ratio |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for row in rows:
        passed = [record for record in row.records if isinstance(record.result, Verified)]
        if len(passed) < len(row.records) or len(passed) < 2:
            outcomes = [str(record.result) for record in row.records]
            raise SystemExit(f"{row.kernel} {row.where}: expected two variants that pass, got {outcomes}")
        # The fastest, as of the naive check: what else runs on the machine only adds.
        first, further = passed[0].seconds, min(record.seconds for record in passed[1:])
        calls = max(check.cases for check in passed[0].checks)
        yield (
            f"| {row.kernel} | {row.where} | {calls} | {row.naive * 1e3:.2f} ms | {first:.2f} s"
            f" | {further:.2f} s | {further / row.naive:.0f} |"
        )


def _checks(rows: list[Row]) -> Iterator[str]:
    """Milliseconds of each check for one variant; the rest is the candidate's process and its calls."""
    names = [check.check for check in rows[0].records[0].checks]
    yield "| kernel | where | " + " | ".join(names) + " | all checks |"
    yield "|---|---|" + "---:|" * (len(names) + 1)
    for row in rows:
        seconds = [min(record.checks[place].seconds for record in row.records) for place in range(len(names))]
        cells = " | ".join(f"{1e3 * one:.1f}" for one in (*seconds, sum(seconds)))
        yield f"| {row.kernel} | {row.where} | {cells} |"


if __name__ == "__main__":
    main()
