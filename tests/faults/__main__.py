"""Inject faults into runs of the pipeline, and write what came of them.

    python -m tests.faults [--count 200] [--seed 0] [--only KIND] [--out docs/results/faults.md]
    python -m tests.faults --again docs/results/faults.md --add docs/results/faults.md

Exit code 1 where a promise was not kept. `--only KIND --seed N --count 1` repeats one fault, `--again PAGE`
all those that the page lists as not kept; `--add PAGE` adds what came of it to a page.
"""

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.faults.fault import Missed, Skipped, load_kinds
from tests.faults.judging import Judge, Result
from tests.faults.scene import Scene
from tests.faults.table import listed, section, table

TRIES = 4  # seeds beyond those asked for, or times that one is tried, for faults that came too late


def main(arguments: list[str]) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="faults, spread over the kinds")
    parser.add_argument("--seed", type=int, default=0, help="of the first fault of each kind")
    parser.add_argument("--only", metavar="KIND", action="append", help="one of: " + ", ".join(load_kinds()))
    parser.add_argument("--out", type=Path, help="write the table here")
    parser.add_argument("--again", type=Path, metavar="PAGE", help="the faults that it lists as not kept")
    parser.add_argument("--add", type=Path, metavar="PAGE", help="add the table to this page as a section")
    parser.add_argument("--log", type=Path, help="append each result as a line of JSON; those there count")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="kmf-", dir="/tmp"))
    try:
        results, skipped = inject(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    shown = table(results, skipped, " ".join(["python -m tests.faults", *_given(options)]))
    if options.out:
        options.out.write_text(shown)
    if options.add:
        options.add.write_text(f"{options.add.read_text()}\n{section(shown, 'Faults injected afterwards')}")
    failed = [result for result in results if result.problems]
    print(f"{len(results)} faults, {len(failed)} with a promise not kept, {len(skipped)} kinds skipped")
    return int(bool(failed))


def inject(options: argparse.Namespace, folder: Path) -> tuple[list[Result], dict[str, str]]:
    """All faults in turn."""
    results = _known(options.log)
    skipped: dict[str, str] = {}
    scene = Scene(folder)
    try:
        print("preparing …", flush=True)
        scene.prepare()
        judge = Judge(scene)
        print(f"an undisturbed run takes {scene.seconds:.1f} s", flush=True)
        chosen = _again if options.again else _drawn
        for found in chosen(judge, options, results, skipped):
            results.append(found)
            _tell(found, options.log)
    finally:
        with contextlib.suppress(TimeoutError):
            scene.end_all()
    return results, skipped


def _again(
    judge: Judge, options: argparse.Namespace, results: list[Result], skipped: dict[str, str]
) -> Iterator[Result]:
    """Each fault of a page where a promise was not kept, but those that the log has."""
    kinds = load_kinds()
    for name, seed in listed(options.again.read_text()):
        if name not in (options.only or kinds) or any(each[:2] == (name, seed) for each in results):
            continue
        for _ in range(TRIES):
            try:
                yield judge.try_fault(name, kinds[name], seed)
            except Missed as missed:
                print(f"{name} {seed}: missed: {missed}", flush=True)
            except Skipped as reason:
                skipped[name] = str(reason)
            else:
                break


def _drawn(
    judge: Judge, options: argparse.Namespace, results: list[Result], skipped: dict[str, str]
) -> Iterator[Result]:
    """As many as are asked for, kind by kind in turn; `results` grows meanwhile."""
    kinds = load_kinds()
    names = options.only or list(kinds)
    number = 0
    seeds = dict.fromkeys(names, options.seed)
    while len(results) < options.count and len(skipped) < len(names):
        name = names[number % len(names)]
        number += 1
        if name in skipped or any(result[:2] == (name, seeds[name]) for result in results):
            seeds[name] += name not in skipped
            continue
        try:
            found = _one(judge, kinds, name, seeds)
        except Skipped as reason:
            skipped[name] = str(reason)
            print(f"{name}: skipped: {reason}", flush=True)
            continue
        if found is not None:
            yield found


def _one(judge: Judge, kinds: dict, name: str, seeds: dict[str, int]) -> Result | None:
    """The next fault of a kind; None where several in turn came too late."""
    for _ in range(TRIES):
        seed = seeds[name]
        seeds[name] += 1
        try:
            return judge.try_fault(name, kinds[name], seed)
        except Missed as missed:
            print(f"{name} {seed}: missed: {missed}", flush=True)
    return None


def _given(options: argparse.Namespace) -> list[str]:
    """The arguments that say which faults these are."""
    if options.again:
        return ["--again", str(options.again)]
    only = [f'--only "{name}"' for name in options.only or ()]
    return [*only, f"--count {options.count}", f"--seed {options.seed}"]


def _tell(found: Result, log: Path | None) -> None:
    mark = "; ".join(found.problems) or "kept"
    said = f"{found.code} · {found.said[:160]} · {found.next} · {found.seconds:.1f} s"
    print(f"{found.kind} {found.seed} ({found.where}): {mark} · {said}", flush=True)
    if log is not None:
        with log.open("a") as stream:
            stream.write(json.dumps(found._asdict()) + "\n")


def _known(log: Path | None) -> list[Result]:
    if log is None or not log.is_file():
        return []
    found = [json.loads(line) for line in log.read_text().splitlines()]
    return [Result(**{**each, "problems": tuple(each["problems"])}) for each in found]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
