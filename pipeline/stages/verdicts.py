"""verdicts: the judged problems of a folder -> one table.

In: a VerdictsSpec, a JudgeOutput for each of its keys and, where candidates were timed, a TimingOutput. Out:
`verdicts.csv`, one row per candidate.
"""

import argparse
import sys
from pathlib import Path

from pipeline.records.record import read_record
from pipeline.records.results.judged import JudgeOutput, VerdictsSpec
from pipeline.records.results.timed import TimingOutput
from pipeline.sandbox import stage_command
from pipeline.verify.candidates.verdict_table import write_table


def main(arguments: list[str]) -> int:
    """Command line of the stage; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.stages.verdicts", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="VerdictsSpec as JSON")
    parser.add_argument("--out", type=Path, required=True, help="the table to write")
    parser.add_argument("--judged", type=Path, required=True, help="folder of the judge stage's outputs")
    parser.add_argument("--timed", type=Path, required=True, help="folder of the timing stage's outputs")
    options = parser.parse_args(arguments)
    return stage_command.run(lambda: collect(options))


def collect(options: argparse.Namespace) -> None:
    """Write the table of all problems."""
    spec = read_record(options.spec, VerdictsSpec)
    outputs = [read_record(options.judged / f"{key}.json", JudgeOutput) for key in spec.keys]
    timed = None
    if spec.timed is not None:
        files = [read_record(options.timed / f"{key}.json", TimingOutput) for key in spec.timed]
        timed = [record for each in files for record in each.records]
    write_table(options.out, [verdict for output in outputs for verdict in output.verdicts], timed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
