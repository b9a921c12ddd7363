"""A measuring child in which other harnesses time the same call, right before or right after our batch.

It does all that ours does (`pipeline.measure.hosting.measuring_process`) and is asked the same. In each round
`torch.utils.benchmark` (`blocked_autorange`) and pytest-benchmark, on a GPU Triton's `do_bench` or
`do_bench_cudagraph`, time the call that our batch times, each with its own clock, calls per sample and
samples: same process, threads, content and places in memory. A coin decides whether they come before our
batch or after it. What they found goes to a file, one line per round.
"""

import contextlib
import gc
import json
import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from pipeline.measure.comparison.rounds import CANDIDATE
from pipeline.measure.hosting.measuring_messages import Answer, Candidate, Command, Go, Prepare, SetUp
from pipeline.measure.hosting.measuring_process import Host, serve_as
from pipeline.sandbox.processes.channel import Channel

FOLDER = "KERNELMILL_AGREEMENT"  # where the samples go
SECONDS = 0.05  # of timed calls, each harness and round
SETTLE_SECONDS = 0.01  # of untimed calls before each of them, as before our batches
TEST = """
def timed_call(benchmark, call):
    benchmark(call)
"""
"""In a folder of its own: pytest looks at all that lies beside a test, and takes every conftest above it."""
Call = Callable[[], object]


def serve(channel: Channel) -> None:
    """Runs in the forked child until the channel closes."""
    serve_as(_Host, channel)


class _Host(Host):
    def __init__(self, set_up: SetUp) -> None:
        super().__init__(set_up)
        hosted = set_up.hosted
        is_candidate = isinstance(hosted, Candidate)
        name = CANDIDATE if is_candidate else {"no": "eager"}.get(hosted.compiled, "compile")
        self._harnesses = harnesses(host=self._device.is_host, flush_cache=set_up.flush_cache)
        self._samples = Path(os.environ[FOLDER]) / f"{name}.jsonl"
        self._samples.touch()
        self._after = False

    def obey(self, command: Command) -> Answer:
        if self._after and not isinstance(command, Go):  # the batch was before this command
            self._theirs()
            self._after = False
        if not isinstance(command, Prepare):
            return super().obey(command)
        self._after = random.random() < 0.5
        answer = super().obey(command)
        if not self._after:
            self._theirs()
            self.timer.settle(self.call, command.settle_seconds or 0.0)
        return answer

    def _theirs(self) -> None:
        found = {}
        # What is recorded as a graph cannot be recorded again.
        call = self.call if self._device.is_host else self._hosted.bind()
        for name in random.sample(sorted(self._harnesses), len(self._harnesses)):
            self.timer.settle(call, SETTLE_SECONDS)
            found[name] = self._harnesses[name](call)
        with self._samples.open("a") as out:
            out.write(json.dumps(found) + "\n")


def _torch(call: Call) -> list[float]:
    """Seconds per call, one per block; garbage is collected, as timeit's manual says how to."""
    import torch.utils.benchmark  # which opens the driver of a GPU: no process that is forked later could

    timer = torch.utils.benchmark.Timer(
        "call()", "gc.enable()", globals={"call": call, "gc": gc}, num_threads=torch.get_num_threads()
    )
    return list(timer.blocked_autorange(min_run_time=SECONDS).times)


class _Plugin:
    """Hands the callable to the test above."""

    def __init__(self, call: Call) -> None:
        self._call = call

    @pytest.fixture
    def call(self) -> Call:
        """What is timed."""
        return self._call

    @pytest.hookimpl(tryfirst=True)
    def pytest_benchmark_generate_machine_info(self) -> dict[str, str]:
        """Nothing: to ask the processor what it is takes a second, in every round."""
        return {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_benchmark_generate_commit_info(self) -> dict[str, str]:
        """Nothing: git is asked otherwise."""
        return {}


def _pytest(call: Call) -> list[float]:
    """Seconds per call, one per round."""
    with tempfile.TemporaryDirectory() as folder:
        written, test = Path(folder) / "benchmark.json", Path(folder) / "timed.py"
        test.write_text(TEST)
        arguments = [
            *("-q", "--no-header", "--no-summary", "-c", os.devnull, "--rootdir", folder),
            *(
                "-p",
                "pytest_benchmark.plugin",
                "--confcutdir",
                folder,
                "--import-mode=importlib",
                "-p",
                "no:cacheprovider",
            ),
            *("-o", "python_functions=timed_call", f"--benchmark-json={written}", "--benchmark-save-data"),
            *(f"--benchmark-max-time={SECONDS}", "--benchmark-quiet", str(test)),
        ]
        alone = mock.patch.dict(os.environ, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
        with alone, open(os.devnull, "w") as quiet, contextlib.redirect_stdout(quiet):  # noqa: PTH123
            ended = pytest.main(arguments, plugins=[_Plugin(call)])
        if ended != 0:
            raise RuntimeError(f"pytest-benchmark ended with {ended}")
        (measured,) = json.loads(written.read_text())["benchmarks"]
        return [float(each) for each in measured["stats"]["data"]]


def _do_bench(call: Call) -> list[float]:
    """Seconds per call, the L2 cache overwritten before each."""
    from triton.testing import do_bench

    return [1e-3 * each for each in do_bench(call, warmup=5, rep=1e3 * SECONDS, return_mode="all")]


def _do_bench_cudagraph(call: Call) -> list[float]:
    """Seconds per call, one per replay of a graph of many."""
    from triton.testing import do_bench_cudagraph

    return [1e-3 * each for each in do_bench_cudagraph(call, rep=1e3 * SECONDS, return_mode="all")]


def harnesses(*, host: bool, flush_cache: bool) -> dict[str, Callable[[Call], list[float]]]:
    """Those that time what our batches time, by name."""
    if host:
        return {"torch.utils.benchmark": _torch, "pytest-benchmark": _pytest}
    return {"do_bench": _do_bench} if flush_cache else {"do_bench_cudagraph": _do_bench_cudagraph}
