"""Look at everything under artifacts/: what is not as it was written is removed, for the next run to make.

    python -m pipeline.cli.check [--root artifacts]

A run looks at what it uses; this looks at all. In: the store. Out: one line for each damaged thing; exit code
1 where there was any. Waits for a run in this checkout to end.
"""

import argparse
import sys
from pathlib import Path

from pipeline.execution.recovery import OUTPUTS, recover_entries, remove
from pipeline.records.errors import KernelmillError
from pipeline.records.layout import STAGES
from pipeline.store.entries import remove_damaged
from pipeline.store.lock import take_lock
from pipeline.store.seals import is_damaged


def main(arguments: list[str]) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.cli.check", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("artifacts"), help="the artifact store")
    options = parser.parse_args(arguments)
    try:
        with take_lock(options.root / ".lock"):
            entries, bad = check(options.root)
    except KernelmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{entries} store entries, {bad} damaged or missing" + ("; run again" if bad else ""))
    return int(bad > 0)


def check(root: Path) -> tuple[int, int]:
    """How many entries there are, and how many things were damaged or missing."""
    bad = entries = 0
    for folder in sorted((root / "store").glob("*/*/*")):
        if folder.is_dir() and not folder.name.startswith("."):
            entries += 1
            bad += remove_damaged(root, folder.parent.parent.name, folder.name)
    for stage in STAGES:
        for path in sorted((root / stage).glob("*/round*.json")):
            if is_damaged(path):
                remove(path, "not what was written")
                bad += 1
            elif stage in OUTPUTS:
                bad += recover_entries(root, stage, path)
    return entries, bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
