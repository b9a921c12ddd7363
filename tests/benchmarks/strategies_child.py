"""A strategy of Kernel Tuner on a recorded space; runs where only it and what it needs is installed.

    python -S tests/benchmarks/strategies_child.py JOB.json     (PYTHONPATH: its folder of packages)

Its own simulation mode looks the measurements up. Prints a line of JSON for each seed that ends within the
limit: the configurations in the order in which they were evaluated, each once, as the keys of its cache file.
"""

import contextlib
import io
import json
import random
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from kernel_tuner import tune_kernel, util
from processor_limit import Spent, processor_limit


def main() -> None:
    """Run the strategy with every seed."""
    warnings.simplefilter("ignore")
    job = json.loads(Path(sys.argv[1]).read_text())
    _read_once()
    found: list[dict] = []
    with contextlib.suppress(Spent), processor_limit(job["limit"]):
        for seed in job["seeds"]:
            started = time.process_time()
            keys = _search(job, seed)
            found.append({"seed": seed, "keys": keys, "seconds": time.process_time() - started})
    for each in found:
        print(json.dumps(each))


def _search(job: dict, seed: int) -> list[str]:
    """One search from its beginning. A configuration that is asked for again costs its budget nothing."""
    random.seed(seed)
    np.random.seed(seed)
    with contextlib.redirect_stdout(io.StringIO()):
        results, _ = tune_kernel(
            job["kernel"],
            "__global__ void nothing() {}",
            tuple(job["problem"]),
            [],
            job["tunables"],
            restrictions=list(job["rules"]),
            cache=job["cache"],
            strategy=job["strategy"],
            strategy_options={"max_fevals": job["evaluations"]},
            simulation_mode=True,
            lang="CUDA",
            quiet=True,
            seed=seed,
        )
    keys = [",".join(str(each[key]) for key in job["tunables"]) for each in results]
    return list(dict.fromkeys(keys))


def _read_once() -> None:
    """Its cache file, some megabytes, would be read anew for every search."""
    read, kept = util.read_cache, {}

    def read_cache(path: str, open_cache: bool = True) -> dict:
        if path not in kept:
            kept[path] = read(path, open_cache)
        return kept[path]

    util.read_cache = read_cache


if __name__ == "__main__":
    main()
