"""Kernel Tuner's strategies on recorded spaces; runs where only it and what it needs is installed.

    python -S tests/benchmarks/strategies_child.py JOB.json     (PYTHONPATH: its folder of packages)

Its own simulation mode looks the measurements up. Prints, as JSON, the configurations of each search in the
order in which it evaluated them, each as the key of its cache file.
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


def main() -> None:
    """Run every strategy with every seed."""
    warnings.simplefilter("ignore")
    job = json.loads(Path(sys.argv[1]).read_text())
    _read_once()
    for name in job["strategies"]:
        started = time.process_time()
        for seed in job["seeds"]:
            try:
                found = _search(job, name, seed)
                line = {"strategy": name, "seed": seed, "keys": found}
            except Exception as error:  # noqa: BLE001  (whatever it is, the table tells that it failed)
                line = {"strategy": name, "seed": seed, "error": f"{type(error).__name__}: {error}"}
            line["seconds"] = time.process_time() - started
            started = time.process_time()
            print(json.dumps(line), flush=True)


def _search(job: dict, name: str, seed: int) -> list[str]:
    """One search from its beginning: what was evaluated, each configuration once."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (what its strategies draw from)
    with contextlib.redirect_stdout(io.StringIO()):
        results, _ = tune_kernel(
            job["kernel"],
            "__global__ void nothing() {}",
            tuple(job["problem"]),
            [],
            {key: list(values) for key, values in job["tunables"].items()},
            restrictions=list(job["rules"]),
            cache=job["cache"],
            strategy=name,
            strategy_options={"max_fevals": job["evaluations"]},
            simulation_mode=True,
            lang="CUDA",
            iterations=32,
            quiet=True,
            seed=seed,
        )
    keys = [",".join(str(each[key]) for key in job["tunables"]) for each in results]
    return list(dict.fromkeys(keys))


def _read_once() -> None:
    """Its cache file is read anew by every call, some megabytes: read it once, with the same result."""
    read, kept = util.read_cache, {}

    def read_cache(path: str, open_cache: bool = True) -> dict:
        if path not in kept:
            kept[path] = read(path, open_cache)
        return kept[path]

    util.read_cache = read_cache


if __name__ == "__main__":
    main()
