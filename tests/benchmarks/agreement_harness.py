"""One callable under independent harnesses: its set-up as JSON in, their samples as JSON out.

    python -m tests.benchmarks.agreement_harness SETUP.json OUT.json

The process has the threads, cores, priority and allocator of a measuring child, and calls the callable the
same way; the clock, the calls per sample and the samples are those of `torch.utils.benchmark`
(`blocked_autorange`) and of pytest-benchmark. The content is drawn once and never renewed.
"""

import functools
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.utils.benchmark

from pipeline.measure.commands import SetUp
from pipeline.measure.content import Content
from pipeline.measure.hosting import load
from pipeline.measure.timer_cpu import CpuTimer
from pipeline.records.record import read_record

SECONDS = 0.3  # of timed calls, each harness
Call = Callable[[], object]


class _Plugin:
    """Hands the callable to the test below."""

    def __init__(self, call: Call) -> None:
        self._call = call

    @pytest.fixture
    def call(self) -> Call:
        """What is timed."""
        return self._call


def timed_call(benchmark, call) -> None:
    """Collected by pytest as a test: pytest-benchmark calibrates and times it."""
    benchmark(call)


def main(set_up: Path, out: Path) -> None:
    """Load, warm up, and time with both."""
    found = read_record(set_up, SetUp)
    timer = CpuTimer(flush_cache=False)
    timer.prepare()
    content = Content(found.problem, "cpu")
    content.renew(int.from_bytes(os.urandom(6), "big"))
    call = load(found, content).bind()
    timer.settle(call, 0.1)  # threads are started and pinned
    samples = {"torch.utils.benchmark": _torch(call), "pytest-benchmark": _pytest(call)}
    out.write_text(json.dumps(samples))


def _torch(call: Call) -> list[float]:
    """Seconds per call, one per block."""
    timer = torch.utils.benchmark.Timer("call()", globals={"call": call}, num_threads=torch.get_num_threads())
    return list(timer.blocked_autorange(min_run_time=SECONDS).times)


def _pytest(call: Call) -> list[float]:
    """Seconds per call, one per round."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "benchmark.json"
        arguments = [
            *("-q", "--no-header", "--no-summary", "-c", os.devnull, "--rootdir", folder),
            *("-p", "no:cacheprovider", "-o", "python_functions=timed_call", f"--benchmark-json={written}"),
            *("--benchmark-save-data", f"--benchmark-max-time={SECONDS}", __file__),
        ]
        with open(os.devnull, "w") as quiet:  # noqa: PTH123
            code = functools.partial(pytest.main, arguments, plugins=[_Plugin(call)])
            sys.stdout, before = quiet, sys.stdout
            try:
                ended = code()
            finally:
                sys.stdout = before
        if ended != 0:
            raise RuntimeError(f"pytest-benchmark ended with {ended}")
        (measured,) = json.loads(written.read_text())["benchmarks"]
        return [float(each) for each in measured["stats"]["data"]]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
