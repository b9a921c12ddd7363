"""aggregate: everything that an experiment's stages wrote -> typed tables, winners and a summary.

In: an AggregateSpec and the outputs of its tasks under the artifacts' root. Out: the Summary, and beside it
variants, samples, winners, outcomes, pruned, effects, static_facts, estimate_error, diagnoses, mutants,
counters, rounds, ablation, pruning and attempts as Parquet and CSV; static_facts.md, mutation.md.

    python -m pipeline.stages.aggregate --spec S.json --out FOLDER/summary.json [--root artifacts]
"""

import argparse
import sys
import time
from pathlib import Path

import msgspec

from pipeline.analyze.ablation import ablation_table, find_ablations
from pipeline.analyze.attempts import agent_uses, attempts_table
from pipeline.analyze.bound.error import find_errors
from pipeline.analyze.bound.error_table import error_lines, error_table
from pipeline.analyze.collect import collect
from pipeline.analyze.counters import counters_table
from pipeline.analyze.diagnosis.table import diagnoses_table
from pipeline.analyze.effects import effects_table, find_effects
from pipeline.analyze.facts import choose, facts_markdown, facts_table
from pipeline.analyze.mutants import collect_mutants, mutants_markdown, mutants_table
from pipeline.analyze.pruning import find_prunings, pruning_table
from pipeline.analyze.rounds import find_rounds, rounds_table
from pipeline.analyze.summarize import summarize
from pipeline.analyze.tables import (
    outcomes_table,
    pruned_table,
    samples_table,
    variants_table,
    write_csv,
    write_parquet,
)
from pipeline.analyze.winners import find_winners, winners_table
from pipeline.records.record import read_record, to_json
from pipeline.records.specs import AggregateSpec
from pipeline.records.summary import Summary
from pipeline.store.atomic import write_atomic
from pipeline.store.provenance import provenance
from pipeline.store.seals import reseal, write_sealed
from pipeline.workers import command

PARQUET_ONLY = ("samples",)  # a number per batch: millions of lines as CSV


def main(arguments: list[str]) -> int:
    """Command line of the stage; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.stages.aggregate", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="AggregateSpec as JSON")
    parser.add_argument("--out", type=Path, required=True, help="Summary to write; the tables go beside it")
    parser.add_argument("--root", type=Path, default=Path("artifacts"), help="the artifact store")
    options = parser.parse_args(arguments)
    return command.run(lambda: aggregate(options))


def aggregate(options: argparse.Namespace) -> None:
    """Write the tables, then the summary: where it stands, they are whole."""
    started = time.monotonic()
    spec = read_record(options.spec, AggregateSpec)
    collected = collect(spec, options.root)
    results = collected.results
    winners = find_winners(results)
    chosen = choose(results)
    errors = find_errors(results)
    prunings = find_prunings(collected)
    mutants = mutants_table(collect_mutants(spec, options.root))
    tables = {
        "variants": variants_table(results),
        "samples": samples_table(results),
        "winners": winners_table(winners),
        "outcomes": outcomes_table(results),
        "pruned": pruned_table(spec, collected),
        "effects": effects_table(find_effects(results)),
        "static_facts": facts_table(chosen),
        "estimate_error": error_table(errors),
        "diagnoses": diagnoses_table(results, collected.declared),
        "mutants": mutants,
        "counters": counters_table(results),
        "attempts": attempts_table(collected),
        "rounds": rounds_table(find_rounds(collected)),
        "ablation": ablation_table(find_ablations(collected)),
        "pruning": pruning_table(prunings),
    }
    folder = options.out.parent
    for name, table in tables.items():
        write_parquet(table, folder / f"{name}.parquet")
        if name not in PARQUET_ONLY:
            write_csv(table, folder / f"{name}.csv")
    write_atomic(folder / "static_facts.md", facts_markdown(chosen).encode())
    write_atomic(folder / "mutation.md", mutants_markdown(mutants.to_pylist()).encode())
    files = {name: f"{name}.parquet" for name in tables}
    summary = summarize(spec, results, winners, tables=files, provenance=provenance(spec.build))
    summary = msgspec.structs.replace(summary, agents=agent_uses(collected))
    reseal(folder)
    write_sealed(options.out, to_json(summary))
    _print_line(summary, time.monotonic() - started)
    for line in (*error_lines(errors), *(each.sentence for each in prunings)):
        print(f"  {line}", file=sys.stderr)


def _print_line(summary: Summary, seconds: float) -> None:
    profiled = summary.stages["profile"]
    measured = sum(count for outcome, count in profiled.items() if outcome == "passed")
    print(
        f"aggregate {summary.experiment}: {summary.tasks} tasks, {summary.variants} variants, "
        f"{measured} measured · {seconds:.1f} s",
        file=sys.stderr,
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
