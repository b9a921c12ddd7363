"""How many submissions of agents are judged in an hour, with one worker and with two.

    python -m tests.benchmarks.judging_rate [--seconds 60] [--out docs/results/judging_rate.md]

Each worker is a client that submits one source after the other, as through `kernelmill mcp`: every source
differs in a comment, so none is known. The worker processes are warm, as in all but the first submission.
"""

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from pipeline.execution.agents.single_judging import SubmissionJudge
from pipeline.records.outcome import Outcome
from pipeline.store.attempt_history import put_source
from tests.benchmarks.machine import where
from tests.cli.test_judge import CTYPES, TORCH, TRITON, problems

PAGE = Path("docs/results/judging_rate.md")
WORKERS = (1, 2)
LONGEST = 300.0  # seconds of one judgement


class Kind(NamedTuple):
    """Submissions of one kind."""

    what: str
    problem: str
    source: str
    outcome: Outcome


KINDS = (
    Kind("right, Triton in the interpreter", "softmax", TRITON, Outcome.PASSED),
    Kind("wrong values", "softmax", TRITON.replace(" * weight, mask", ", mask"), Outcome.WRONG_VALUE),
    Kind("right, C++ that it compiles itself", "double", CTYPES, Outcome.PASSED),
    Kind("PyTorch does the work", "double", TORCH, Outcome.TAMPERED),
)


class Rate(NamedTuple):
    """What was judged in some time."""

    kind: Kind
    workers: int
    seconds: float
    each: list[float]
    """Seconds of every submission."""

    @property
    def an_hour(self) -> float:
        """Submissions."""
        return 3600 * len(self.each) / self.seconds


def main(arguments: list[str]) -> int:
    """Measure, print and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.judging_rate", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="for each row")
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        judge = SubmissionJudge(
            problems(Path(folder) / "problems"), hardware="cpu", verify="standard", store=store
        )
        rates = list(_rates(judge, store, options.seconds))
    page = _page(rates, options.seconds)
    print(page)
    options.out.write_text(page)
    return 0


def _rates(judge: SubmissionJudge, store: Path, seconds: float) -> Iterator[Rate]:
    numbers = itertools.count()

    def submit(kind: Kind) -> float:
        started = time.monotonic()
        source = put_source(store, f"{kind.source}\n# {next(numbers)}\n")
        verdict = judge.judge(kind.problem, source, LONGEST).verdict
        assert verdict.outcome is kind.outcome, verdict
        return time.monotonic() - started

    def client(kind: Kind, until: float) -> list[float]:
        found = []
        while time.monotonic() < until:
            found.append(submit(kind))
        return found

    for kind in KINDS:
        submit(kind)  # the worker is warm then
        for workers in WORKERS:
            started = time.monotonic()
            with ThreadPoolExecutor(workers) as pool:
                ended = [pool.submit(client, kind, started + seconds) for _ in range(workers)]
                each = [one for future in ended for one in future.result()]
            yield Rate(kind, workers, time.monotonic() - started, each)


def _page(rates: list[Rate], seconds: float) -> str:
    command = f"python -m tests.benchmarks.judging_rate --seconds {seconds:g}"
    lines = [
        "# Rate of judging",
        "",
        "How many submissions of agents are judged in an hour? Each worker is a client that submits one",
        "source after the other, as through [`kernelmill mcp`](../guide/agents.md), with",
        "`verify=standard`. No source is known, and nothing is measured. The problems are those of",
        "`tests/cli/test_judge.py`: 24 × 80 and 3,000 elements.",
        "",
        f"```sh\n{command}\n```",
        "",
        where(("torch", "triton")),
        "",
        "| submission | workers | judged | an hour | median time of one |",
        "|---|---:|---:|---:|---:|",
    ]
    for rate in rates:
        cells = (
            rate.kind.what,
            str(rate.workers),
            str(len(rate.each)),
            f"{rate.an_hour:,.0f}",
            f"{statistics.median(rate.each):.2f} s",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
