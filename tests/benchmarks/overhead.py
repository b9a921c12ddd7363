"""What the pipeline itself costs: a cold sweep against a bare loop doing the same compiles and timings.

    python -m tests.benchmarks.overhead [--repeats 3]

Both run from a cold start in turn, on the same cores, in a private copy of the project, and the ratio of
their wall times is printed with the breakdown by stage. Run it on a quiet machine.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.end_to_end.checkout import ROOT, Checkout

SWEEPS = {
    "48 Triton matmul variants for h200, compile": (
        "compile",
        "kernel=matmul workload=llama3_8b_prefill hardware=h200 optimization=full tracking=disabled "
        "optimization.implementations=[triton] search=random search.variants_per_round=48",
    ),
    "32 C++ softmax variants on the CPU, compile + verify + profile": (
        "profile",
        "kernel=softmax workload=bert_base hardware=cpu optimization=full tracking=disabled "
        "search=random search.variants_per_round=32",
    ),
}
SECONDS = re.compile(r"(\d+\.\d) s$")


def measure(what: str, overrides: str) -> dict[str, float]:
    """One cold pipeline run and one cold bare loop; seconds of each and of their parts."""
    with tempfile.TemporaryDirectory(prefix="km-") as scratch:
        checkout = Checkout(Path(scratch) / "project")
        shutil.copytree(
            ROOT / "tests", checkout.folder / "tests", ignore=shutil.ignore_patterns("__pycache__")
        )
        # A temporary folder of its own: the warm worker must not be there yet. So must compiled modules.
        checkout.environment |= {"TMPDIR": scratch}
        del checkout.environment["PYTHONDONTWRITEBYTECODE"]
        compile_modules(checkout)
        started = time.perf_counter()
        checkout.snakemake(what, "--config", f"overrides={overrides}", seconds=1200)
        pipeline = time.perf_counter() - started
        command = [sys.executable, "-m", "tests.benchmarks.bare", what, str(checkout.folder)]
        environment = checkout.environment | {"TORCHINDUCTOR_CACHE_DIR": f"{scratch}/inductor"}
        started = time.perf_counter()
        ended = subprocess.run(
            command, cwd=checkout.folder, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        bare = time.perf_counter() - started
        parts = json.loads(ended.stdout.splitlines()[-1])
        return {
            "pipeline": pipeline,
            "bare": bare,
            **{f"pipeline {stage}": seconds for stage, seconds in stages(checkout).items()},
            **{f"bare {part}": seconds for part, seconds in parts.items()},
        }


def compile_modules(checkout: Checkout) -> None:
    """Both sides find their modules compiled to bytecode, as on every run but the first one."""
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", "pipeline", "tests", "kernels"],
        cwd=checkout.folder,
        check=True,
    )


def stages(checkout: Checkout) -> dict[str, float]:
    """Seconds that each stage says it took, from its log."""
    found: dict[str, float] = {}
    for log in (checkout.folder / "artifacts" / "logs").glob("*/*/*.log"):
        for line in log.read_text().splitlines():
            match = SECONDS.search(line)
            if match:
                stage = log.parts[-3]
                found[stage] = found.get(stage, 0.0) + float(match[1])
    return found


def main() -> None:
    """Print one row per sweep: the median of the ratios, and where the time goes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(f"{len(os.sched_getaffinity(0))} cores; medians of {options.repeats} repeats\n")
    for name, (what, overrides) in SWEEPS.items():
        runs = [measure(what, overrides) for _ in range(options.repeats)]
        ratios = [run["pipeline"] / run["bare"] for run in runs]
        print(f"{name}: ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
        for part in runs[0]:
            print(f"  {part:<20} {statistics.median(run[part] for run in runs):7.2f} s")
        print(flush=True)


if __name__ == "__main__":
    main()
