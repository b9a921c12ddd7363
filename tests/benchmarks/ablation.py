"""What each technique of the C++ matmul is worth: the search `ablation`, and its pairs side by side.

    python -m tests.benchmarks.ablation [--workload bert_base] [--rounds 4] [--out=PAGE]

A TPE search looks for the best variant, and the last round switches its techniques off, one at a time, all
through the pipeline as a user's run. Then each pair is measured once more, side by side: the pipeline
measures the two one after the other. Run it on a quiet machine (five minutes); writes
docs/results/ablation.md.
"""

# ruff: noqa: E501  (most of it is the page's text, wrapped as pages are)

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.performance import quantities
from pipeline.records.layout import spec_path
from pipeline.records.planning.specs import ProfileSpec
from pipeline.records.record import read_record
from pipeline.records.results.compiled import CompileOutput, CompileRecord
from pipeline.records.results.profiled import ConfidenceInterval
from pipeline.store.atomic import write_atomic
from tests.benchmarks.figures import ROOT
from tests.benchmarks.machine import where
from tests.benchmarks.side_by_side import TIMES, SideBySide
from tests.benchmarks.sweeps import benchmark_checkout
from tests.benchmarks.tree import spend
from tests.end_to_end.checkout import Checkout

PAGE = ROOT / "docs" / "results" / "ablation.md"
LIMIT = 3000.0  # seconds, where the machine is busy
Row = Mapping[str, Any]


def overrides(workload: str, rounds: int) -> str:
    """Of the run, as a user types them."""
    return (
        f"kernel=matmul workload={workload} hardware=cpu optimization=full search=ablation search.ablation.search=optuna "
        f"search.rounds={rounds} search.variants_per_round=8 verify=fast profile=thorough profile.baselines=[eager]"
    )


def main() -> None:
    """Run it, measure the pairs, write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", default="bert_base")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args()
    typed = overrides(options.workload, options.rounds)
    command = f"python -m tests.benchmarks.ablation --workload {options.workload} --rounds {options.rounds}"
    with tempfile.TemporaryDirectory(prefix="km-") as scratch:
        checkout = benchmark_checkout(Path(scratch) / "project")
        spend(
            checkout.command("aggregate", "--config", f"overrides={typed} tracking=disabled"),
            folder=checkout.folder,
            environment=checkout.environment,
            temporary=Path(scratch),
            limit=LIMIT,
        )
        rows, rounds = _table(checkout, "ablation"), _table(checkout, "rounds")
        if not rows:
            sys.exit("error: the search compared nothing; see its last round")
        pairs = side_by_side(checkout, rows)
    text = "\n".join(page(rows, rounds, pairs, (typed, command))) + "\n"
    write_atomic(options.out, text.encode())
    print(text)


def side_by_side(checkout: Checkout, rows: Sequence[Row]) -> dict[str, ConfidenceInterval]:
    """Variant -> its speed over that of the best one."""
    store = checkout.folder / "artifacts"
    (key,) = [each.name for each in (store / "profile").iterdir()]
    compiled: list[CompileRecord] = []
    for path in sorted((store / "compile").glob("*/round*.json")):
        compiled += read_record(path, CompileOutput).records
    bench = SideBySide(store, read_record(spec_path(store, "profile", key), ProfileSpec), compiled)
    timed = [row["variant"] for row in rows if row["seconds"] is not None]
    return bench.speeds(timed, rows[0]["best_variant"])


def page(
    rows: Sequence[Row],
    rounds: Sequence[Row],
    pairs: Mapping[str, ConfidenceInterval],
    commands: tuple[str, str],
) -> Iterator[str]:
    """Its lines."""
    best, last = rows[0], rounds[-1]
    yield "# Ablation of the C++ matmul\n"
    yield f"```sh\n{commands[1]}\n```\n"
    yield where(("torch", "optuna", "numpy")) + "\n"
    yield "It runs, in a copy of the project with an empty store:\n"
    yield f"```sh\nkernelmill run {commands[0]}\n```\n"
    yield (
        f"Its report and `ablation.csv` contain this table without the last column. {last['variants']} variants in "
        f"{last['round'] + 1} rounds; the last round switched off the techniques of the best one:"
        f" `{best['best_configuration']}`, {quantities.seconds(best['best_seconds'])} per call on {best['workload']}.\n"
    )
    yield "| without | changed | along, by the rules | time | slowdown | the technique | slowdown, side by side |"
    yield "| --- | --- | --- | ---: | ---: | --- | ---: |"
    for row in rows:
        yield f"| {' | '.join(_cells(row, pairs.get(row['variant'])))} |"
    yield ""
    yield _method()


def _cells(row: Row, speed: ConfidenceInterval | None) -> list[str]:
    named = [
        row["technique"].replace("_", " "),
        f"`{row['changed']}`",
        f"`{row['along']}`" if row["along"] else "",
    ]
    if row["time_ratio"] is None:
        return [*named, "–", "–", row["verdict"].replace("_", " "), "–"]
    ratio = f"{row['time_ratio']:.3f} ({row['time_ratio_low']:.3f} to {row['time_ratio_high']:.3f})"
    beside = (
        "not measured"
        if speed is None
        else f"{1 / speed.value:.3f} ({1 / speed.high:.3f} to {1 / speed.low:.3f})"
    )
    return [*named, quantities.seconds(row["seconds"]), ratio, row["verdict"], beside]


def _method() -> str:
    return f"""\
*Slowdown*: time without the technique over the time of the best variant, in brackets the 95 % interval. The technique pays
if the whole interval lies above 1.01, costs if it lies below 1 / 1.01, and is indistinguishable otherwise (`profile=thorough`
times every variant in several processes). The pipeline measured the two variants one after the other; a drift of the machine
is taken out of both times by eager PyTorch, which ran with each. The best of many variants is selected by its own times,
which favors it. *Side by side* avoids both effects: the two alternate in one run, in separate processes, {TIMES} times; the
median ratio, with an interval that contains the intervals of all of them.

*Along*: the rules of the space exclude the variant that lacks only this technique, so the nearest valid one is used; its
ratio includes both changes. A tunable that expresses no technique returns to its default. A technique that the best
variant does not use has no row."""


def _table(checkout: Checkout, name: str) -> list[Row]:
    import pyarrow.parquet as pq

    (path,) = (checkout.folder / "artifacts" / "aggregate").glob(f"*/{name}.parquet")
    return list(pq.read_table(path).to_pylist())


if __name__ == "__main__":
    main()
