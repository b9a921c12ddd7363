"""A peer on a GPU: Kernel Tuner, a bare loop and this pipeline on one space of a kernel in CUDA C++.

    python -m tests.benchmarks.peer_gpu [--kernel matmul|softmax] [--variants N] [--packages FOLDER]

All three start cold, compile every variant for the device with NVRTC, and time it. The pipeline
(`kernelmill bundle run`, verify=fast, profile=quick, without baselines) also verifies it with several inputs,
in processes of their own. Kernel Tuner (`lang="cupy"`, so it needs CuPy; its 7 timed calls) compares one
result with one tolerance. The bare loop compiles with the backend's own function, one process per core, and
makes as many calls of each variant as the pipeline timed, without a check.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.backends.backend import CompileJob
from pipeline.backends.c_sources import macros
from pipeline.backends.cuda import loading
from pipeline.backends.cuda.launch_geometry import geometry_of
from pipeline.backends.cuda.nvrtc import toolkit_headers
from pipeline.backends.devices.cuda.timer import CudaTimer
from pipeline.records.layout import entry_path
from pipeline.records.planning.specs import CompileSpec
from pipeline.records.record import read_record
from pipeline.records.results.profiled import Profiled, ProfileOutput
from tests.benchmarks.bare import Parts, compile_all, identity, read_tasks
from tests.benchmarks.figures import markdown_table, seconds
from tests.benchmarks.machine import where
from tests.paths import ROOT

KERNELS = {"matmul": "tiles", "softmax": "full"}
"""Kernel -> the optimization whose tunables are free."""
PARTS = ("conf", "hydra_plugins", "kernels", "pipeline", "tests", "pyproject.toml")
CHILD = Path(__file__).with_name("peer_gpu_child.py")
CLOSE = 1.02
"""A variant that takes at most so many times the best one's time counts as a best one."""


def overrides(kernel: str, variants: int | None) -> tuple[str, ...]:
    """The space, or so many random variants of it."""
    fewer = () if variants is None else ("search=random", f"search.variants_per_round={variants}")
    return (
        *fewer,
        f"kernel={kernel}",
        "workload=llama3_8b_layer",
        "workload.dtype=float16",
        "hardware=local",
        f"optimization={KERNELS[kernel]}",
        "optimization.implementations=[cuda]",
        "verify=fast",
        "profile=quick",
        "profile.baselines=[]",
    )


def compare(kernel: str, variants: int | None, packages: Path | None, scratch: Path) -> Iterator[str]:
    """Lines of a page."""
    checkout = scratch / "project"
    _copy(checkout)
    started = time.time()
    bundle = ["-m", "pipeline", "bundle", "run", "--out", str(scratch / "results.kmb")]
    ours = _wall([*bundle, *overrides(kernel, variants)], checkout)
    store = checkout / "artifacts"
    times, until = _measured(store, started)
    best = min(times.values())
    bare = _wall(["-m", "tests.benchmarks.peer_gpu", "--bare", str(checkout)], checkout)
    job = scratch / "job.json"
    job.write_text(json.dumps(_job(store, times)))
    theirs = _wall([str(CHILD), str(job), *([str(packages)] if packages else [])], scratch)
    found = json.loads((scratch / "found.json").read_text())
    chosen = min(found["results"], key=lambda each: each["time"])
    first = min(each["ended"] for each in found["results"] if times[each["variant"]] <= CLOSE * best)
    yield f"{kernel}, {len(times)} variants in CUDA C++, llama3_8b_layer, float16. {where(('torch',))}\n"
    heading = ("", "this pipeline", "bare loop", f"Kernel Tuner {found['version']}")
    yield markdown_table(
        heading,
        [
            ("all variants", *map(seconds, (ours, bare, theirs))),
            (f"until a variant within {CLOSE - 1:.0%} of the best was timed",
             seconds(min(until[name] for name in until if times[name] <= CLOSE * best)), "", seconds(first)),
            ("variants timed", str(len(times)), str(len(times)), str(len(found["results"]))),
            ("best found, by its own clock", _us(best), "", _us(chosen["time"] * 1e-3)),
            ("best found, by the pipeline's clock", _us(best), "", _us(times[chosen["variant"]])),
        ],
    )  # fmt: skip
    parts = ", ".join(f"{name} {seconds(value)}" for name, value in found["parts"].items())
    ratio = statistics.median(each["time"] * 1e-3 / times[each["variant"]] for each in found["results"])
    yield f"\nKernel Tuner: {parts}; its times are {ratio:.2f} times ours (median of all variants)."


def _us(value: float) -> str:
    return f"{1e6 * value:.1f} µs"


def _copy(folder: Path) -> None:
    """The project without artifacts, its modules compiled, as on every run but the first."""
    for name in PARTS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", "pipeline", "tests/benchmarks"], cwd=folder, check=True
    )


def _wall(arguments: list[str], folder: Path) -> float:
    """Seconds of a Python command; its output goes to stderr."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=folder, check=True, stdout=sys.stderr)
    return time.perf_counter() - started


def _outputs(store: Path) -> ProfileOutput:
    (path,) = (store / "profile").glob("*/round0.json")
    return read_record(path, ProfileOutput)


def _measured(store: Path, started: float) -> tuple[dict[str, float], dict[str, float]]:
    """Variant -> seconds of a call, and seconds after the start at which its measurement was stored."""
    times, until = {}, {}
    for record in _outputs(store).records:
        if isinstance(record.result, Profiled):
            name = _name(record.variant.tunables)
            times[name] = record.result.time.value
            stored = entry_path(store, "profile", record.entry) / "rounds.json"
            until[name] = stored.stat().st_mtime - started
    return times, until


def _name(tunables: dict[str, Any]) -> str:
    return " ".join(f"{name}={int(value)}" for name, value in tunables.items())


def _spec(store: Path) -> CompileSpec:
    (path,) = (store / "plan" / "compile").glob("*.json")
    return read_record(path, CompileSpec)


def _job(store: Path, times: dict[str, float]) -> dict[str, Any]:
    """What Kernel Tuner is asked for: what the pipeline measured."""
    spec = _spec(store)
    points = []
    for record in _outputs(store).records:
        name = _name(record.variant.tunables)
        if name not in times:
            continue
        implementation = spec.implementations[record.variant.implementation]
        job = CompileJob(
            variant=record.variant, implementation=implementation, problem=spec.problem, target=spec.target
        )
        geometry = geometry_of(job, spec.problem.dimensions)
        points.append(
            {
                "name": name,
                "tunables": {key: int(value) for key, value in record.variant.tunables.items()},
                "grid": geometry.grid[0],
                "block": geometry.block[0],
                "shared_memory": geometry.shared_memory,
            }
        )
    own = {name for record in _outputs(store).records for name in record.variant.tunables}
    return {
        "kernel": spec.problem.kernel,
        "source": str(ROOT / implementation.source),
        "entry": implementation.entry,
        "points": points,
        "headers": toolkit_headers(),
        "macros": [each for each in macros(job) if each.partition("=")[0] not in own],
        "dimensions": spec.problem.dimensions,
    }


def bare(checkout: Path) -> None:
    """Compile all variants on all cores, and make as many calls of each as the pipeline timed."""
    store = checkout / "artifacts"
    tasks = read_tasks(store)
    parts = Parts()
    binaries = compile_all(tasks, parts)
    import torch

    timer = CudaTimer(flush_cache=False)
    spec = _spec(store)
    (task,) = tasks
    jobs = {_name(job.variant.tunables): job for job in task.jobs}
    tensors = {
        name: torch.randn(spec.problem.shape(name), device="cuda", dtype=torch.float16)
        for name in spec.problem.tensors
    }
    for record in _outputs(store).records:
        if not isinstance(record.result, Profiled):
            continue
        job = jobs[_name(record.variant.tunables)]
        launch = loading.load_on_device(job, binaries[identity(job)] / "kernel.cubin")
        rounds = json.loads((entry_path(store, "profile", record.entry) / "rounds.json").read_bytes())
        for each in rounds:
            for batch in each["batches"].values():
                timer.straight(lambda launch=launch: launch(tensors), batch["calls"])


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", choices=KERNELS, default="matmul")
    parser.add_argument("--packages", type=Path, help="folder that pip installed kernel-tuner into")
    parser.add_argument("--variants", type=int, help="random ones; default: the whole space")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        return bare(options.bare)
    with tempfile.TemporaryDirectory(prefix="km-") as scratch:
        text = "\n".join(compare(options.kernel, options.variants, options.packages, Path(scratch)))
    print(text)
    if options.out:
        options.out.write_text(text + "\n")
    return None


if __name__ == "__main__":
    main()
