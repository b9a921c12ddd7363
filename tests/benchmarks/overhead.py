"""What the pipeline itself costs: all benchmarks of it, and docs/results/overhead.md.

python -m tests.benchmarks.overhead            every benchmark in turn (half an hour on a quiet machine)
python -m tests.benchmarks.overhead --kept     the page from what they found when each was run by itself
"""

import argparse
import subprocess
import sys

from tests.benchmarks import efficiency, hundred_thousand, peer, sweeps, unchanged
from tests.benchmarks.figures import PAGE, ROOT, kept, page

NAMES = (sweeps.NAME, efficiency.NAME, unchanged.NAME, hundred_thousand.NAME, peer.NAME)
INTRODUCTION = """\
# Overhead of the pipeline

Written by `make bench` (`python -m tests.benchmarks.overhead`), which runs these benchmarks one after the
other; each can also be run alone. All ratios compare runs from a cold start on the same cores.

The *bare loop* does the same compiles and the same calls, and nothing else: no verification, no isolation,
no statistics, no cache, no records, no ceilings. It compiles with the backend's own function, static facts
included, in one process per core, each variant separately (the pipeline precompiles system headers once per
round). It makes as many calls as the pipeline timed, in one process with the pipeline's threads, allocator
and OpenMP runtime. Before each batch it makes the same untimed calls as the pipeline, because caches are
cold otherwise, and it warms up each variant for the minimum time of the settings. Everything else that the
pipeline does counts as overhead: warm-up until the time is stable, new inputs per batch, separate processes,
intervals, the clock check.
"""


def main() -> None:
    """Run what is asked for and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kept", action="store_true", help="run nothing, write the page")
    if not parser.parse_args().kept:
        for name in NAMES:
            subprocess.run([sys.executable, "-m", f"tests.benchmarks.{name}"], cwd=ROOT, check=True)
    PAGE.write_text(page(kept(NAMES), INTRODUCTION))
    print(PAGE.relative_to(ROOT))


if __name__ == "__main__":
    main()
