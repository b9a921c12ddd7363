"""report: the tables of an experiment -> one HTML page that opens from disk without network.

In: an AggregateSpec and the folder that aggregate wrote. Out: the page.

    python -m pipeline.stages.report --spec S.json --aggregate FOLDER --out report.html [--root artifacts]
"""

import argparse
import sys
import time
from pathlib import Path

import msgspec

from pipeline.records.layout import asked_path
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.record import read_record
from pipeline.records.results.aggregated import Summary
from pipeline.records.results.tracked import Tracked, TrackOutput
from pipeline.report.page.page_data import AggregateTables, PageLinks
from pipeline.report.page.rendering import Jobs, render_page
from pipeline.sandbox import stage_command
from pipeline.store.integrity import write_sealed


def main(arguments: list[str]) -> int:
    """Command line of the stage; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.stages.report", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="AggregateSpec as JSON")
    parser.add_argument(
        "--aggregate", type=Path, required=True, help="folder with summary.json and the tables"
    )
    parser.add_argument("--tracked", type=Path, help="TrackOutput, to link to the MLflow UI")
    parser.add_argument("--out", type=Path, required=True, help="HTML page to write")
    parser.add_argument("--root", type=Path, default=Path("artifacts"), help="the artifact store")
    options = parser.parse_args(arguments)
    return stage_command.run(lambda: report(options))


def report(options: argparse.Namespace) -> None:
    """Render the page and write it."""
    started = time.monotonic()
    spec = read_record(options.spec, AggregateSpec)
    summary = read_record(options.aggregate / "summary.json", Summary)
    tables = AggregateTables(folder=options.aggregate, summary=summary)
    links = PageLinks(root=options.root, page=options.out)
    asked = asked_path(options.spec)
    jobs = msgspec.json.decode(asked.read_bytes(), type=Jobs) if asked.is_file() else ()
    page = render_page(spec, tables, links, _tracked(options.tracked), jobs).encode()
    write_sealed(options.out, page)
    size, seconds = len(page) / 1e6, time.monotonic() - started
    print(f"report {summary.experiment}: {options.out}, {size:.1f} MB · {seconds:.1f} s", file=sys.stderr)


def _tracked(path: Path | None) -> Tracked | None:
    if path is None:
        return None
    result = read_record(path, TrackOutput).result
    return result if isinstance(result, Tracked) else None


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
