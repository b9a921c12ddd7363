"""A cold sweep against the bare loop: what the pipeline costs beside the compiles and calls that it drives.

    python -m tests.benchmarks.sweeps [--repeats 1] [--only compile|profile] [--variants N]

Both run from a cold start in turn, on the same cores, in a private copy of the project: empty artifacts/, no
warm worker, no ceilings of another checkout, modules compiled to bytecode; each with a folder of its own for
temporary files, because torch.compile keeps a precompiled header there. Run it on a quiet machine;
`tests.benchmarks.bare` says what the bare loop does.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from pipeline.stages.profile import PREPARED
from tests.benchmarks.figures import Figure, Section, Table, measured, publish, seconds
from tests.benchmarks.tree import spend
from tests.end_to_end.checkout import ROOT, Checkout

NAME = "sweeps"
CEILINGS = f"({PREPARED}ceilings)"
"""The part of a cold run that the device's ceilings take: once per device, boot and user."""
SECONDS = re.compile(r" · (\d+\.\d) s$")


class Sweep(NamedTuple):
    """What is swept."""

    what: str
    """Target of Snakemake."""
    title: str
    overrides: str
    tasks: int
    """Each gets an equal part of the variants."""
    variants: int
    aim: float


SWEEPS = (
    Sweep(
        what="compile",
        title="Triton variants for h200: compile",
        overrides="kernel=matmul,matmul_bias_gelu workload=llama3_8b_prefill,llama3_8b_layer,vit_b16 "
        "hardware=h200 optimization=full optimization.implementations=[triton]",
        tasks=6,
        variants=204,
        aim=1.10,
    ),
    Sweep(
        what="profile",
        title="C++ variants: compile, verify and profile",
        overrides="kernel=softmax workload=bert_base,vit_b16 hardware=cpu optimization=full",
        tasks=2,
        variants=64,
        aim=1.15,
    ),
)


class Run(NamedTuple):
    """One cold pipeline run and one cold bare loop."""

    pipeline: float
    bare: float
    pipeline_cpu: float
    bare_cpu: float
    pipeline_parts: dict[str, float]
    bare_parts: dict[str, float]
    variants: int


def cold(sweep: Sweep, variants: int) -> Run:
    """Seconds of both and of their parts."""
    with tempfile.TemporaryDirectory(prefix="km-") as scratch:
        checkout = benchmark_checkout(Path(scratch) / "project")
        overrides = (
            f"{sweep.overrides} tracking=disabled search=random "
            f"search.variants_per_round={variants // sweep.tasks}"
        )
        surroundings = {
            "folder": checkout.folder,
            "environment": checkout.environment | {"TORCHINDUCTOR_CACHE_DIR": f"{scratch}/inductor"},
        }
        command = checkout.command(sweep.what, "--config", f"overrides={overrides}")
        ours = spend(command, **surroundings, temporary=Path(scratch))
        parts, done = stages(checkout)
        bare = [sys.executable, "-m", "tests.benchmarks.bare", sweep.what, str(checkout.folder)]
        # A folder of its own: torch.compile precompiles a header there, which takes it seconds.
        apart = Path(scratch) / "bare"
        apart.mkdir()
        theirs = spend(bare, **surroundings, temporary=apart)
        return Run(
            pipeline=ours.seconds,
            bare=theirs.seconds,
            pipeline_cpu=ours.cpu_seconds,
            bare_cpu=theirs.cpu_seconds,
            pipeline_parts=parts,
            bare_parts=json.loads(theirs.output.splitlines()[-1]),
            variants=done,
        )


def benchmark_checkout(folder: Path) -> Checkout:
    """A private copy of the project; its modules are compiled, as on every run but the first."""
    checkout = Checkout(folder)
    for part in ("benchmarks", "end_to_end"):
        shutil.copytree(
            ROOT / "tests" / part, folder / "tests" / part, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("__init__.py", "paths.py", "warm_commands.py"):
        shutil.copy(ROOT / "tests" / name, folder / "tests")
    command = [sys.executable, "-m", "compileall", "-q", "pipeline", "tests", "kernels"]
    subprocess.run(command, cwd=folder, check=True)
    return checkout


def stages(checkout: Checkout) -> tuple[dict[str, float], int]:
    """Seconds that each stage says it took, and how many variants there were."""
    found: dict[str, float] = {}
    for log in sorted((checkout.folder / "artifacts" / "logs").glob("*/*/*.log")):
        stage = log.parts[-3]
        for line in log.read_text().splitlines():
            match = SECONDS.search(line)
            if match:
                part = f"({line.partition(' · ')[0]})" if line.startswith(PREPARED) else stage
                found[part] = found.get(part, 0.0) + float(match[1])
    outputs = (checkout.folder / "artifacts" / "generate").glob("*/round0.json")
    return found, sum(len(json.loads(path.read_bytes())["variants"]) for path in outputs)


def section(runs: dict[Sweep, list[Run]], command: str) -> Section:
    """The ratio of each sweep, and where the time went."""
    figures, tables = [], []
    for sweep, each in runs.items():
        title = f"{each[0].variants} {sweep.title}"
        figures.append(_figure(title, sweep, [run.pipeline / run.bare for run in each]))
        known = [(run.pipeline - run.pipeline_parts.get(CEILINGS, 0.0)) / run.bare for run in each]
        if any(CEILINGS in run.pipeline_parts for run in each):
            figures.append(_figure(f"{title}, without ceilings", sweep, known))
        tables.append(Table(title=title, heading=("part", "pipeline", "bare loop"), rows=_rows(each)))
    return Section(
        name=NAME,
        title="Cold sweeps compared with a bare loop",
        command=command,
        measured=measured(),
        figures=tuple(figures),
        tables=tuple(tables),
    )


def _figure(title: str, sweep: Sweep, ratios: list[float]) -> Figure:
    ratio = statistics.median(ratios)
    spread = f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else ""
    return Figure(
        what=f"Cold sweep relative to the bare loop, {title}",
        found=f"{ratio:.2f}{spread}",
        aim=f"at most {sweep.aim:.2f}",
        met=ratio <= sweep.aim,
    )


def _rows(runs: list[Run]) -> tuple[tuple[str, ...], ...]:
    """Medians of the runs; parts in parentheses lie within the part above."""

    def median(values: list[float]) -> str:
        return seconds(statistics.median(values))

    rows = [
        ("all", median([run.pipeline for run in runs]), median([run.bare for run in runs])),
        (
            "CPU time of the machine",
            median([run.pipeline_cpu for run in runs]),
            median([run.bare_cpu for run in runs]),
        ),
    ]
    ours, theirs = runs[0].pipeline_parts, runs[0].bare_parts
    rows += [
        (
            part,
            median([run.pipeline_parts.get(part, 0.0) for run in runs]) if part in ours else "",
            median([run.bare_parts.get(part, 0.0) for run in runs]) if part in theirs else "",
        )
        for part in dict.fromkeys([*ours, *theirs])
    ]
    known = [
        sum(value for part, value in run.pipeline_parts.items() if not part.startswith("(")) for run in runs
    ]
    fixed = [run.pipeline - spent for run, spent in zip(runs, known, strict=True)]
    rows.append(("start-up: Python, Snakemake, plan, warm worker, jobs", median(fixed), ""))
    return tuple(rows)


def main() -> None:
    """Run the sweeps and publish what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", choices=[sweep.what for sweep in SWEEPS])
    parser.add_argument("--variants", type=int, help="fewer, to try it")
    options = parser.parse_args()
    chosen = [sweep for sweep in SWEEPS if options.only in (None, sweep.what)]
    runs = {
        sweep: [cold(sweep, options.variants or sweep.variants) for _ in range(options.repeats)]
        for sweep in chosen
    }
    publish(section(runs, " ".join(["python -m tests.benchmarks.sweeps", *sys.argv[1:]])))


if __name__ == "__main__":
    main()
