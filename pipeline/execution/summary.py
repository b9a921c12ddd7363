"""Show what a run came to: the winners, and where to read on."""

from pathlib import Path

from pipeline.execution.workflow import Workflow
from pipeline.records.record import read_record
from pipeline.records.summary import Summary
from pipeline.records.tracked import Tracked, TrackOutput
from pipeline.report.summary_text import summary_text


def show(workflow: Workflow) -> None:
    """Print the winners, as far as the run has come."""
    summary = Path(workflow.aggregate)
    if not summary.is_file():  # only an earlier stage was asked for
        return
    print()
    print(summary_text(read_record(summary, Summary)))
    if Path(workflow.report).is_file():
        print(f"report   {workflow.report}")
    if Path(workflow.tracked).is_file():
        tracked = read_record(Path(workflow.tracked), TrackOutput).result
        print("MLflow   make ui" if isinstance(tracked, Tracked) else f"MLflow   {tracked.reason}")
