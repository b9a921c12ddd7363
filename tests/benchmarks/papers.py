"""Runs the experiments of the literature, conf/experiment/paper, and writes docs/papers.md from their tables.

    python -m tests.benchmarks.papers [NAME…]

Without a name all that the page lacks. A section that it has stays as it is, unless it is named or --again is
given; if its experiment has changed since, it gets the new description and says that its figures are older.
Run it on a quiet machine: a few minutes for each experiment.
"""

import argparse
import csv
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from pipeline.performance.geometric_mean import CONFIDENCE, geometric_mean, logarithm
from pipeline.performance.quantities import digits, seconds, share
from pipeline.records.results.profiled import ConfidenceInterval
from pipeline.report.summary import LARGE_SPEEDUP
from pipeline.report.winner_selection import MANY
from pipeline.store.atomic import write_atomic
from tests.benchmarks.figures import markdown_table
from tests.benchmarks.machine import where
from tests.paths import ROOT

EXPERIMENTS = ROOT / "conf" / "experiment" / "paper"
PAGE = ROOT / "docs" / "papers.md"
BASELINES = {"eager": "eager PyTorch", "compile": "torch.compile"}
FACTS = {"registers": "registers", "spills": "spills", "shared_memory": "shared memory (B)"}
LINES = 20
"""Other variants that the page names at most."""
INTRODUCTION = """# Experiments of the literature

Each section is an experiment of `conf/experiment/paper`, and made from its tables by
`python -m tests.benchmarks.papers`. A ratio is the time of the baseline over the time of the fastest variant
that verified, measured side by side, with its 95 % interval: above 1, the kernel is faster. Times are those
of the machine that each section names. From 2026-11-28 on, a baseline that is more than ten times slower is
followed by its own share of the roofline: where that is small, the ratio says more about the baseline than
about the kernel. Kernels for a GPU were compiled for it and run in Triton's interpreter; nothing here says
how fast they are.
"""
OLDER = "The experiment has changed since it was measured: the figures are those of the version before."
Row = Mapping[str, str]


def main() -> None:
    """Run what is asked for, and write the page of all that was run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    known = [path.stem for path in sorted(EXPERIMENTS.glob("*.yaml"))]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(known)}")
    parser.add_argument("--again", action="store_true", help="all, also those that were run before")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(known))
    if unknown:
        parser.error(f"unknown experiment {unknown[0]!r} (known: {', '.join(known)})")
    sections = {} if options.again else sections_of(PAGE.read_text())
    sections = {name: with_description(name, text) for name, text in sections.items() if name in known}
    write_atomic(
        PAGE, "\n".join([INTRODUCTION, *(sections[each] for each in known if each in sections)]).encode()
    )
    for name in options.names or [each for each in known if each not in sections]:
        sections[name] = section(name, run(name))
        made = [sections[each] for each in known if each in sections]
        write_atomic(PAGE, "\n".join([INTRODUCTION, *made]).encode())
    print(f"{PAGE.relative_to(ROOT)}: {len(sections)} of {len(known)} experiments")


def sections_of(page: str) -> dict[str, str]:
    """What the page has: experiment -> its section."""
    sections = [f"## {each}" for each in page.split("\n## ")[1:]]
    return {each.partition("\n")[0].removeprefix("## "): each for each in sections}


def description_of(name: str) -> str:
    """What an experiment says of itself."""
    return str(
        yaml.safe_load((EXPERIMENTS / f"{name}.yaml").read_text())["experiment"]["description"]
    ).strip()


def with_description(name: str, text: str) -> str:
    """A section with the description of today; where another one was measured, it says so."""
    heading, _, rest = text.partition("\n\n")
    described, _, figures = rest.partition("\n\n")
    if described == description_of(name):
        return text
    return "\n\n".join([heading, description_of(name), OLDER, figures.removeprefix(f"{OLDER}\n\n")])


def run(name: str) -> Path:
    """Run the experiment as a user does; the folder of its tables."""
    command = [sys.executable, "-m", "pipeline", "run", f"experiment=paper/{name}", "--json"]
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return ROOT / str(json.loads(ended.stdout)["tables"])


def section(name: str, tables: Path) -> str:
    """One experiment: its words, its command, times and static facts."""
    experiment = yaml.safe_load((EXPERIMENTS / f"{name}.yaml").read_text())["experiment"]
    parts = [
        f"## {name}",
        experiment["description"].strip(),
        f"```sh\nkernelmill run experiment=paper/{name}\n```",
    ]
    parts += [where(("torch", "triton")), *_measured(_rows(tables / "winners.csv"))]
    parts += _others(_rows(tables / "variants.csv"))
    parts += _static(_rows(tables / "static_facts.csv"))
    return "\n\n".join(parts) + "\n"


def _measured(winners: Sequence[Row]) -> Iterator[str]:
    rows = [row for row in winners if row["status"] == "measured"]
    if not rows:
        return
    names = [
        key.removeprefix("speedup.") for key in rows[0] if key.count(".") == 1 and key.startswith("speedup.")
    ]
    heading = [
        "kernel",
        "workload",
        "dtype",
        "configuration",
        "time",
        *(BASELINES.get(each, each) for each in names),
    ]
    lines = []
    for row in rows:
        against = [_ratio(row, each) for each in names]
        time = seconds(float(row["median_seconds"]))
        configuration = f"{row['implementation']} `{row['configuration']}`"
        lines.append([row["kernel"], row["workload"], row["dtype"], configuration, time, *against])
    presets = ", ".join(sorted({f"`{row['verify_preset']}`" for row in rows}))
    yield f"Measured, after verification with the preset {presets}:"
    yield markdown_table(heading, lines, left=4)
    yield from _means(rows, names)


def _means(rows: Sequence[Row], baselines: Sequence[str]) -> Iterator[str]:
    """Of each kernel with many workloads: its mean speed-ups, as the report has them."""
    kernels: dict[str, list[Row]] = {}
    for row in rows:
        kernels.setdefault(row["kernel"], []).append(row)
    for kernel, several in kernels.items():
        for baseline in baselines:
            ratios = [ratio for row in several if (ratio := _interval(row, baseline)) is not None]
            if len(ratios) < max(len(several), MANY):
                continue
            mean = geometric_mean([[logarithm(ratio)] for ratio in ratios])
            verdicts = [row[f"verdict.{baseline}"] for row in several]
            yield (
                f"{kernel} against {BASELINES.get(baseline, baseline)} on {len(ratios)} workloads: faster on "
                f"{verdicts.count('faster')}, slower on {verdicts.count('slower')}; geometric mean of the "
                f"ratios {digits(mean.value)} ({digits(mean.low)} to {digits(mean.high)})."
            )


def _interval(row: Row, baseline: str) -> ConfidenceInterval | None:
    found = [row[f"speedup.{baseline}{end}"] for end in ("", ".low", ".high")]
    if not all(found):
        return None
    value, low, high = map(float, found)
    return ConfidenceInterval(value=value, low=low, high=high, confidence=CONFIDENCE)


def _others(variants: Sequence[Row]) -> Iterator[str]:
    """Of a task that has several: how much longer the slower ones took."""
    measured = [row for row in variants if row["outcome"] == "passed" and row["median_seconds"]]
    best: dict[str, float] = {}
    for row in measured:
        time = float(row["median_seconds"])
        best[row["task"]] = min(time, best.get(row["task"], time))
    lines = [
        [
            *(row[name] for name in ("kernel", "workload", "dtype")),
            f"{row['implementation']} `{row['configuration']}`",
            seconds(float(row["median_seconds"])),
            digits(float(row["median_seconds"]) / best[row["task"]]),
        ]
        for row in measured
        if float(row["median_seconds"]) > best[row["task"]]
    ]
    if len(lines) > LINES:
        yield f"{len(lines)} other variants were measured; the report of the run has them."
    elif lines:
        yield "The other variants that were measured:"
        heading = ["kernel", "workload", "dtype", "configuration", "time", "times the fastest"]
        yield markdown_table(heading, lines, left=4)


def _ratio(row: Row, baseline: str) -> str:
    if not row[f"speedup.{baseline}"]:
        return ""
    ratio, low, high = (
        digits(float(row[f"speedup.{baseline}{end}"])) if row[f"speedup.{baseline}{end}"] else "?"
        for end in ("", ".low", ".high")
    )
    text = f"{ratio} ({low} to {high})"
    if float(row[f"speedup.{baseline}"]) < LARGE_SPEEDUP or not row.get("roofline_share"):
        return text
    return f"{text}, at {share(float(row['roofline_share']) / float(row[f'speedup.{baseline}']))}"


def _static(facts: Sequence[Row]) -> Iterator[str]:
    rows = [row for row in facts if row["kind"] != "cpu" and row["outcome"] == "passed"]
    if not rows:
        return
    # One variant may be there as the first one and as the default.
    rows = list(
        {
            (row["kernel"], row["workload"], row["hardware"], row["configuration"]): row for row in rows
        }.values()
    )
    heading = ["kernel", "workload", "for", "configuration", *FACTS.values(), "matrix instructions"]
    lines = [
        [
            row["kernel"],
            row["workload"],
            row["hardware"],
            f"`{row['configuration']}`",
            *(row[name] for name in FACTS),
            row["matrix"] or row["matrix_instructions"],
        ]
        for row in rows
    ]
    yield "Compiled for GPUs that were not there:"
    yield markdown_table(heading, lines, left=4)
    yield "How fast these are cannot be said without the devices."


def _rows(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    main()
