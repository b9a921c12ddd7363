"""aggregate: everything that an experiment's stages wrote -> typed tables, winners and a summary.

In: an AggregateSpec and the outputs of its tasks under the artifacts' root. Out: the Summary, and next to it
variants, samples, winners, outcomes, pruned, effects, static_facts, estimate_error, diagnoses, mutants,
counters, rounds, ablation, pruning and attempts as Parquet and CSV; static_facts.md, mutation.md. What a
group of tasks adds to them is kept in the store, so that only groups with a changed result are looked at
again.

    python -m pipeline.stages.aggregate --spec S.json --out FOLDER/summary.json [--root artifacts]
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pipeline.performance.quantities import counted
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.record import digest_bytes, read_record, to_json
from pipeline.records.results.aggregated import NotMeasured, Summary, Winner
from pipeline.report.summary import summarize
from pipeline.report.tables.attempts_table import together
from pipeline.report.tables.estimate_error_table import error_lines
from pipeline.report.tables.facts_table import facts_markdown
from pipeline.report.tables.mutants_table import collect_mutants, mutants_markdown, mutants_table
from pipeline.report.tables.task_groups import GroupTables, groups, join_tables, parts_of
from pipeline.report.tables.variants_table import pruned_table, to_csv, to_parquet
from pipeline.report.winner_selection import winners_table
from pipeline.sandbox import stage_command
from pipeline.store.atomic import write_atomic
from pipeline.store.current_provenance import provenance
from pipeline.store.integrity import reseal, write_sealed

if TYPE_CHECKING:
    import pyarrow as pa

NAMES = (
    *("variants", "samples", "winners", "outcomes", "pruned", "effects", "static_facts", "estimate_error"),
    *("diagnoses", "mutants", "counters", "attempts", "rounds", "ablation", "pruning"),
)
PARQUET_ONLY = ("samples",)  # a number per batch: millions of lines as CSV


def main(arguments: list[str]) -> int:
    """Command line of the stage; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.stages.aggregate", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="AggregateSpec as JSON")
    parser.add_argument(
        "--out", type=Path, required=True, help="Summary to write; the tables are written next to it"
    )
    parser.add_argument("--root", type=Path, default=Path("artifacts"), help="the artifact store")
    options = parser.parse_args(arguments)
    return stage_command.run(lambda: aggregate(options))


def aggregate(options: argparse.Namespace) -> None:
    """Write the tables, then the summary: where it stands, they are whole."""
    started = time.monotonic()
    spec = read_record(options.spec, AggregateSpec)
    # As many as can work: each writes a table, and a large one is some hundred megabytes of text.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        _aggregate(spec, options, started, pool)


def _aggregate(spec: AggregateSpec, options: argparse.Namespace, started: float, pool: Executor) -> None:
    """Threads, because Arrow and the digests leave Python's lock alone."""
    parts = parts_of(groups(spec), options.root, pool)
    condensed = [part.condensed for part in parts]
    winners = tuple(winner for part in condensed for winner in part.winners)
    joined = join_tables(_taken(parts))
    tables = _tables(spec, joined, winners, options.root)
    folder = options.out.parent
    made: dict[str, Callable[[], bytes | memoryview]] = {
        f"{name}.parquet": partial(to_parquet, table) for name, table in tables.items()
    }
    made |= {
        f"{name}.csv": partial(to_csv, table) for name, table in tables.items() if name not in PARQUET_ONLY
    }
    made["static_facts.md"] = lambda: facts_markdown(tables["static_facts"].to_pylist()).encode()
    made["mutation.md"] = lambda: mutants_markdown(tables["mutants"].to_pylist()).encode()
    digests = dict(pool.map(lambda name: (name, _write(folder / name, made[name]())), made))
    files = {name: f"{name}.parquet" for name in tables}
    tallies = [part.tally for part in condensed]
    summary = summarize(spec, tallies, winners, tables=files, provenance=provenance(spec.build))
    agents = together([use for part in condensed for use in part.agents])
    summary = msgspec.structs.replace(summary, agents=agents)
    reseal(folder, digests)
    write_sealed(options.out, to_json(summary))
    _print_line(summary, time.monotonic() - started)
    prunings = [sentence for part in condensed for sentence in part.prunings]
    for line in (*error_lines(tables["estimate_error"].to_pylist()), *prunings):
        print(f"  {line}", file=sys.stderr)


def _write(path: Path, content: bytes | memoryview) -> str:
    """Its digest."""
    write_atomic(path, content)
    return digest_bytes(content)


def _taken(parts: list[GroupTables]) -> Iterator[GroupTables]:
    """One after the other, and none is kept."""
    parts.reverse()
    while parts:
        yield parts.pop()


def _tables(
    spec: AggregateSpec,
    joined: Mapping[str, "pa.Table"],
    winners: Sequence[Winner | NotMeasured],
    root: Path,
) -> dict[str, "pa.Table"]:
    import pyarrow as pa

    others = {
        "winners": winners_table(winners),
        "pruned": pa.concat_tables([pruned_table(spec.pruned, ()), joined["pruned"]]).combine_chunks(),
        "mutants": mutants_table(collect_mutants(spec, root)),
    }
    return {name: others[name] if name in others else joined[name] for name in NAMES}


def _print_line(summary: Summary, seconds: float) -> None:
    profiled = summary.stages["profile"]
    measured = sum(count for outcome, count in profiled.items() if outcome == "passed")
    print(
        f"aggregate {summary.experiment}: {counted(summary.tasks, 'task')}, "
        f"{counted(summary.variants, 'variant')}, "
        f"{measured} measured · {seconds:.1f} s",
        file=sys.stderr,
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
