"""Kernel Tuner on given variants of a kernel in CUDA C++; imports nothing of this project.

    python tests/benchmarks/peer_gpu_child.py JOB.json [PACKAGES]

Writes found.json next to the job. Its own check is on: each variant's result is compared with the right one.
"""

import datetime
import json
import sys
import time
from pathlib import Path

began = time.perf_counter()
sys.path[1:1] = sys.argv[2:]
sys.modules["torch"] = None  # Kernel Tuner would import it, and need not
import cupy as cp  # noqa: E402
import kernel_tuner  # noqa: E402
import numpy as np  # noqa: E402

PARTS = {"compile": "compile_time", "verify": "verification_time", "profile": "benchmark_time"}
"""Our words -> Kernel Tuner's, for milliseconds of each variant."""


def problem(job: dict) -> tuple[list, list, float]:
    """Arguments of the kernel, the right values of those that it writes, and the tolerance."""
    random = np.random.default_rng(0)
    sizes = [np.int64(size) for size in job["dimensions"].values()]
    if job["kernel"] == "matmul":
        m, n, k = map(int, sizes)
        a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
        right = cp.asnumpy(cp.asarray(a, dtype=cp.float32) @ cp.asarray(b, dtype=cp.float32))
        arguments = [a, b, np.zeros((m, n), np.float16), *sizes, np.int64(k), np.int64(n)]
        return arguments, [None, None, right.astype(np.float16), *[None] * 5], 0.5
    rows, cols = map(int, sizes)
    x = random.standard_normal((rows, cols)).astype(np.float16)
    powers = np.exp(x.astype(np.float32))
    right = (powers / powers.sum(axis=1, keepdims=True)).astype(np.float16)
    return [x, np.zeros_like(x), *sizes, np.int64(cols)], [None, right, None, None, None], 1e-4


def allow_shared_memory() -> None:
    """All of a block's: Kernel Tuner asks CuPy for no more than 48 KiB."""
    from kernel_tuner.backends.cupy import CupyFunctions

    compiled = CupyFunctions.compile

    def compile_kernel(self: CupyFunctions, instance: object) -> object:
        kernel = compiled(self, instance)
        most = self.devprops["MaxSharedMemoryPerBlockOptin"]
        kernel.max_dynamic_shared_size_bytes = most - kernel.shared_size_bytes
        return kernel

    CupyFunctions.compile = compile_kernel


def main() -> None:
    """Tune, and write what was found."""
    allow_shared_memory()
    path = Path(sys.argv[1])
    job = json.loads(path.read_text())
    points = job["points"]
    arguments, answer, tolerance = problem(job)
    by_tunables = {tuple(point["tunables"].values()): point for point in points}
    names = list(points[0]["tunables"])

    def point_of(chosen: dict) -> dict | None:
        return by_tunables.get(tuple(chosen[name] for name in names))

    def allowed(chosen: dict) -> bool:  # Kernel Tuner reads the source of a lambda, and misreads this one
        point = point_of(chosen)
        return point is not None and point["block"] == chosen["block_size_x"]

    source = Path(job["source"])
    results, _ = kernel_tuner.tune_kernel(
        job["entry"],
        source.read_text(),
        lambda chosen: point_of(chosen)["grid"],
        arguments,
        {name: sorted({point["tunables"][name] for point in points}) for name in names}
        | {"block_size_x": sorted({point["block"] for point in points})},
        grid_div_x=[],
        restrictions=allowed,
        answer=answer,
        atol=tolerance,
        lang="cupy",
        smem_args={"size": lambda chosen: point_of(chosen)["shared_memory"]},
        compiler_options=[
            *("--std=c++17", f"-I{source.parent}", *[f"-I{folder}" for folder in job["headers"]]),
            *[f"-D{each}" for each in job["macros"]],
        ],
        quiet=True,
    )
    ended = time.perf_counter() - began
    found = [each for each in results if isinstance(each["time"], float)]
    spent = {part: sum(each[name] for each in found) / 1e3 for part, name in PARTS.items()}
    last = max(_seconds(each["timestamp"]) for each in found)
    lines = [
        {
            "variant": point_of(each)["name"],
            "time": each["time"],
            "ended": ended - (last - _seconds(each["timestamp"])),
        }
        for each in found
    ]
    out = {"version": kernel_tuner.__version__, "parts": spent, "results": lines}
    (path.parent / "found.json").write_text(json.dumps(out))


def _seconds(stamp: str) -> float:
    return datetime.datetime.fromisoformat(stamp).timestamp()


if __name__ == "__main__":
    main()
