"""False alarms and a known slow-down, as docs/results/false_alarms.md.

    python -m tests.benchmarks.false_alarms [--comparisons 200] [--each 40] [--slowdowns 40]

Runs `kernelmill aa` and `python -m tests.benchmarks.slowdown` and writes what they print.
Run it on a quiet machine.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.benchmarks.machine import where
from tests.paths import ROOT

TARGET = ROOT / "docs" / "results" / "false_alarms.md"
EQUALS = ("pipeline", "aa", "kernel=softmax", "workload=bert_base", "hardware=cpu", "profile=standard")
KERNELS = "softmax,softmax_backward,rms_norm,rms_norm_backward,matmul,matmul_bias_gelu"
EACH = (
    "pipeline",
    "aa",
    f"kernel={KERNELS}",
    "workload=awkward,bert_base",
    "hardware=cpu",
    "profile=standard",
)
SLOWED = ("tests.benchmarks.slowdown", "--percent", "3", "--profile", "thorough")
HEADINGS = ("A kernel against itself", "Each kernel against itself")
REMARKS = """\
The kernel (`tests/benchmarks/slowed_softmax.cpp`) computes every 33rd row twice. Fewer than 95 % of the
intervals may contain 3 %, because the slowdown is not exactly 3 %: the second computation of a row costs
about as much as a row, and the test for it adds a little to every row.
"""


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.false_alarms", description=__doc__)
    parser.add_argument("--comparisons", type=int, default=200, help="of a kernel with itself")
    parser.add_argument("--each", type=int, default=40, help="of each kernel and workload with itself")
    parser.add_argument("--slowdowns", type=int, default=40, help="comparisons with the slowed kernel")
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args()
    commands = [
        (*EQUALS, "--comparisons", str(options.comparisons)),
        (*EACH, "--comparisons", str(options.each)),
        (*SLOWED, "--comparisons", str(options.slowdowns)),
    ]
    said = [_said(command) for command in commands]
    options.out.write_text("\n".join(page(commands, said, where(("torch", "numpy")))) + "\n")
    print(options.out.read_text())


def _said(command: Sequence[str]) -> str:
    """What it prints.

    Raises
    ------
    CalledProcessError
        It failed, or a comparison ended otherwise than with a verdict.
    """
    print(f"$ {shown(command)}", file=sys.stderr)
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def shown(command: Sequence[str]) -> str:
    """As one types it."""
    program = "kernelmill" if command[0] == "pipeline" else f"python -m {command[0]}"
    return " ".join([program, *command[1:]])


def page(commands: Sequence[Sequence[str]], said: Sequence[str], place: str) -> Iterator[str]:
    """Each command with its result."""
    *equals, slowed = said
    yield "# False alarms, and a known slowdown\n"
    yield f"{place} Each comparison starts all processes anew.\n"
    for heading, command, told in zip(HEADINGS, commands, equals, strict=False):
        yield f"## {heading}\n"
        yield f"```sh\n{shown(command)}\n```\n"
        yield told[told.index("| kernel") :].strip() + "\n"
    yield "## 3 % more work\n"
    yield f"```sh\npython -m {' '.join(commands[-1])}\n```\n"
    yield slowed.strip()[:1].upper() + slowed.strip()[1:] + ".\n"
    yield REMARKS.strip()


if __name__ == "__main__":
    main()
