"""Mutation scores of every kernel's sources, as docs/results/mutation.md.

    python -m tests.benchmarks.mutation

Runs `snakemake --cores all mutation --config experiment=mutation`, which goes on where it was stopped, and
writes the table with its survivors.
"""

import subprocess
import sys

from pipeline.plan.plan_cache import current_plan
from pipeline.records.layout import spec_path
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.record import read_record
from pipeline.report.tables.mutants_table import collect_mutants, mutants_markdown, mutants_table
from tests.benchmarks.machine import where
from tests.paths import ROOT

STORE = ROOT / "artifacts"
TARGET = ROOT / "docs" / "results" / "mutation.md"
EXPERIMENT = "experiment=mutation"
INTRODUCTION = """# Mutation score

Written by `python -m tests.benchmarks.mutation`. {where} The report of `kernelmill
run experiment=mutation` has the same table. A mutant is one small mistake in a kernel's source, compiled and
verified with the preset `standard` like any other variant; Triton mutants run in the interpreter. *Same
code* counts mutants whose machine code equals the original's. The score excludes them and mutants that do
not compile. The mutated lines are fixed; inputs are drawn anew in each run, so a score varies by a mutant or
two. Survivors are explained in `survivors.yaml`, in the folder of the sources.

"""


def main() -> None:
    """Run what is missing and write the table."""
    command = ["snakemake", "--cores", "all", "mutation", "--config", EXPERIMENT]
    subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=True)
    plan = current_plan((EXPERIMENT,), root=ROOT, store=STORE)
    spec = read_record(spec_path(STORE, "aggregate", plan.aggregate), AggregateSpec)
    table = mutants_table(collect_mutants(spec, STORE))
    introduction = INTRODUCTION.format(where=where(("torch", "triton")))
    TARGET.write_text(introduction + mutants_markdown(table.to_pylist()))
    print(TARGET.relative_to(ROOT))


if __name__ == "__main__":
    main()
