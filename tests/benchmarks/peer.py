"""A peer on the same work: Kernel Tuner and this pipeline on 32 variants of the C++ softmax, by turns.

    python -m pip install --constraint requirements.lock --editable '.[peers]'
    python -m tests.benchmarks.peer [--packages FOLDER] [--repeats 1]

Both start cold, compile each variant with the same compiler and flags, check its result and time it;
neither times a baseline. Kernel Tuner compares one result with one tolerance and times single calls (its
default: 7), all in one process, and compiles its first variant twice, as a warm-up. (Its option `parallel`,
off by default, would time variants side by side on the cores that they compete for.) The pipeline runs its
gate `standard`, isolates every variant, and times each until its median is known to some per cent. So
Kernel Tuner runs a second time, with as many timed calls as the pipeline made of a variant at least: what
it would take to say as much, though not as surely. It runs without this project's packages, so that it does
not import torch.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from pipeline.backends.cpp import compiler
from pipeline.records.planning.specs import CompileSpec
from pipeline.records.record import read_record
from pipeline.records.results.profiled import Profiled, ProfileOutput
from pipeline.records.results.variant import Generated
from tests.benchmarks.figures import ROOT, Figure, Section, Table, measured, publish, seconds
from tests.benchmarks.sweeps import CEILINGS, benchmark_checkout, stages
from tests.benchmarks.tree import Spent, spend
from tests.end_to_end.checkout import Checkout

NAME = "peer"
PACKAGE = "kernel-tuner"
VARIANTS = 32
ITERATIONS = 7  # Kernel Tuner's default
AIM = 1.5
THEIR_PARTS = ("imports", "compile", "verify", "profile")
REST = "other"
OVERRIDES = (
    "kernel=softmax workload=bert_base hardware=cpu optimization=full tracking=disabled "
    "profile=quick profile.baselines=[] search=random"
)


class Turn(NamedTuple):
    """One cold run of each."""

    ours: Spent
    theirs: Spent
    as_many: Spent
    """Theirs with as many calls as ours."""
    parts: dict[str, float]
    their_parts: dict[str, float]
    variants: int
    calls: int
    """Fewest timed calls of a variant here."""


def measure(packages: Path, repeats: int, variants: int) -> Section:
    """Both, by turns."""
    turns = [_turn(packages, variants) for _ in range(repeats)]
    first = turns[0]
    cold = [turn.theirs.seconds / turn.ours.seconds for turn in turns]
    known = [turn.theirs.seconds / (turn.ours.seconds - turn.parts.get(CEILINGS, 0.0)) for turn in turns]
    equal = [turn.as_many.seconds / turn.ours.seconds for turn in turns]
    title = f"Kernel Tuner's wall time relative to ours, {first.variants} variants of the C++ softmax"
    return Section(
        name=NAME,
        title="Comparison with Kernel Tuner",
        command=" ".join(["python -m tests.benchmarks.peer", *sys.argv[1:]]),
        measured=f"{measured()} Kernel Tuner {_version(packages)}.",
        figures=(
            _figure(title, cold),
            _figure(f"{title}, without ceilings", known),
            _figure(f"{title}, with as many timed calls as ours", equal),
        ),
        tables=(
            Table(title="Wall time", heading=("", "this pipeline", "Kernel Tuner"), rows=tuple(_rows(turns))),
        ),
    )


def _rows(turns: list[Turn]) -> list[tuple[str, ...]]:
    """Medians of the turns; parts in parentheses lie within the part above."""
    rows = [
        ("all", _median([turn.ours for turn in turns]), _median([turn.theirs for turn in turns])),
        ("all, with as many timed calls", "", _median([turn.as_many for turn in turns])),
        (
            "CPU time of the machine",
            seconds(statistics.median(turn.ours.cpu_seconds for turn in turns)),
            seconds(statistics.median(turn.theirs.cpu_seconds for turn in turns)),
        ),
        ("timed calls per variant, at least", str(min(turn.calls for turn in turns)), str(ITERATIONS)),
    ]
    ours, theirs = [turn.parts for turn in turns], [turn.their_parts for turn in turns]
    rows += [
        (part, _part(part, ours), _part(part, theirs)) for part in dict.fromkeys([*theirs[0], *ours[0], REST])
    ]
    return rows


def _part(name: str, runs: list[dict[str, float]]) -> str:
    """Median of the runs; empty where they have no such part."""
    return seconds(statistics.median(run.get(name, 0.0) for run in runs)) if name in runs[0] else ""


def _figure(title: str, ratios: list[float]) -> Figure:
    ratio = statistics.median(ratios)
    spread = f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else ""
    return Figure(what=title, found=f"{ratio:.2f}{spread}", aim=f"at least {AIM:.1f}", met=ratio >= AIM)


def _median(runs: list[Spent]) -> str:
    return seconds(statistics.median(run.seconds for run in runs))


def _turn(packages: Path, variants: int) -> Turn:
    with tempfile.TemporaryDirectory(prefix="km-") as scratch:
        checkout = benchmark_checkout(Path(scratch) / "project")
        ours = spend(
            checkout.command(
                "profile", "--config", f"overrides={OVERRIDES} search.variants_per_round={variants}"
            ),
            folder=checkout.folder,
            environment=checkout.environment,
            temporary=Path(scratch),
        )
        parts, count = stages(checkout)
        calls = _calls(checkout)
        theirs, told = _tune(checkout, packages, ITERATIONS)
        as_many, _ = _tune(checkout, packages, calls)
    told = {part: told[part] for part in THEIR_PARTS}
    return Turn(
        ours=ours,
        theirs=theirs,
        as_many=as_many,
        parts=parts | {REST: ours.seconds - sum(value for part, value in parts.items() if part[0] != "(")},
        their_parts=told | {REST: theirs.seconds - sum(told.values())},
        variants=count,
        calls=calls,
    )


def _tune(checkout: Checkout, packages: Path, iterations: int) -> tuple[Spent, dict[str, float]]:
    """Kernel Tuner on what the pipeline compiled, with so many timed calls; seconds by part."""
    job = checkout.folder / "job.json"
    job.write_text(json.dumps(_job(checkout, iterations)))
    spent = spend(
        [sys.executable, "-S", str(ROOT / "tests" / "benchmarks" / "peer_child.py"), str(job)],
        folder=checkout.folder.parent,
        environment={**checkout.environment, "PYTHONPATH": str(packages)},
        temporary=checkout.folder.parent,
    )
    told = json.loads(spent.output.splitlines()[-1])
    wanted = len(json.loads(job.read_text())["variants"])
    assert told["tuned"] == wanted, f"Kernel Tuner measured {told['tuned']} of {wanted}\n{spent.output}"
    return spent, told


def _job(checkout: Checkout, iterations: int) -> dict[str, object]:
    """What Kernel Tuner is asked for: what the pipeline compiled."""
    artifacts = checkout.folder / "artifacts"
    (spec_path,) = (artifacts / "plan" / "compile").glob("*.json")
    (generated,) = (artifacts / "generate").glob("*/round0.json")
    problem = read_record(spec_path, CompileSpec).problem
    variants = read_record(generated, Generated).variants
    flags = (*compiler.FLAGS, "-march=native", "-DELEMENT_FLOAT32")
    added_by_itself = ("-fPIC", "-shared")
    return {
        "rows": problem.dimensions["rows"],
        "cols": problem.dimensions["cols"],
        "variants": [{name: int(value) for name, value in each.tunables.items()} for each in variants],
        "source": str(checkout.folder / "kernels" / "softmax" / "softmax.cpp"),
        "compiler": compiler.find()[0],
        "options": [flag for flag in flags if flag not in added_by_itself],
        "iterations": iterations,
    }


def _calls(checkout: Checkout) -> int:
    """Fewest timed calls of a variant; every variant must have been measured."""
    (output,) = (checkout.folder / "artifacts" / "profile").glob("*/round0.json")
    results = [record.result for record in read_record(output, ProfileOutput).records]
    timings = [result.timing for result in results if isinstance(result, Profiled)]
    assert len(timings) == len(results), [each for each in results if not isinstance(each, Profiled)]
    return min(len(timing.samples) * timing.calls_per_batch for timing in timings)


def _version(packages: Path) -> str:
    (folder,) = packages.glob("kernel_tuner-*.dist-info")
    return folder.name.removeprefix("kernel_tuner-").removesuffix(".dist-info")


def installed(packages: Path | None, scratch: Path) -> Path:
    """A folder with Kernel Tuner and what it needs; installed into a temporary one where none is given."""
    if packages is not None:
        return packages
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(scratch), PACKAGE]
    subprocess.run(command, check=True)
    return scratch


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--packages", type=Path, help="folder that pip installed kernel-tuner into")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--variants", type=int, default=VARIANTS, help="fewer, to try it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="km-") as scratch:
        packages = installed(options.packages, Path(scratch))
        publish(measure(packages, options.repeats, options.variants))


if __name__ == "__main__":
    main()
