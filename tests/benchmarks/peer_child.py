"""Kernel Tuner on given variants of the C++ softmax; runs where only it and what it needs is installed.

    python -S tests/benchmarks/peer_child.py JOB.json     (PYTHONPATH: its folder of packages)

Prints its results as JSON. Its own check is on: each variant's result is compared with the right one.
"""

import json
import sys
import time
from pathlib import Path

started = time.perf_counter()
import numpy as np  # noqa: E402
from kernel_tuner import tune_kernel  # noqa: E402

imported = time.perf_counter() - started
PARTS = {"compile": "compile_time", "verify": "verification_time", "profile": "benchmark_time"}
"""Our words -> Kernel Tuner's, for milliseconds of each variant."""
WRAPPER = """
#include "{source}"
#include <omp.h>
extern "C" float timed(const float* x, float* y, std::int64_t rows, std::int64_t cols, std::int64_t stride) {{
    const double start = omp_get_wtime();
    softmax(x, y, rows, cols, stride);
    return static_cast<float>(1e3 * (omp_get_wtime() - start));
}}
"""


def main() -> None:
    """Tune, and print what was found."""
    job = json.loads(Path(sys.argv[1]).read_text())
    rows, cols = job["rows"], job["cols"]
    x = np.random.default_rng(0).standard_normal((rows, cols)).astype(np.float32)
    exponentials = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected = (exponentials / exponentials.sum(axis=1, keepdims=True)).astype(np.float32)
    arguments = [x, np.zeros_like(x), np.int64(rows), np.int64(cols), np.int64(cols)]
    points = [" and ".join(f"{name} == {value}" for name, value in each.items()) for each in job["variants"]]
    names = list(job["variants"][0])
    started = time.perf_counter()
    results, _ = tune_kernel(
        "timed",
        WRAPPER.format(source=job["source"]),
        1,
        arguments,
        {name: sorted({variant[name] for variant in job["variants"]}) for name in names},
        restrictions=[" or ".join(f"({point})" for point in points)],
        answer=[None, expected, None, None, None],
        atol=1e-6,
        lang="C",
        compiler=job["compiler"],
        compiler_options=job["options"],
        iterations=job["iterations"],
        quiet=True,
    )
    found = [each for each in results if isinstance(each["time"], float)]
    spent = {part: sum(each[name] for each in found) / 1e3 for part, name in PARTS.items()}
    seconds = time.perf_counter() - started
    print(json.dumps({"tuned": len(found), "seconds": seconds, "imports": imported, **spent}))


if __name__ == "__main__":
    main()
