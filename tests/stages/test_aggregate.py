import pytest

from pipeline.records.record import read_record
from pipeline.records.results.aggregated import Summary
from pipeline.stages import aggregate
from tests.report.sample_run import cases, write_run

TABLES = ("variants", "samples", "winners", "outcomes", "pruned", "effects", "static_facts")


@pytest.fixture
def run(tmp_path):
    """A small run with failures, and the command line for it."""
    write_run(tmp_path, cases()[:2])
    out = tmp_path / "aggregate" / "sample" / "summary.json"
    return out, ["--spec", str(tmp_path / "spec.json"), "--out", str(out), "--root", str(tmp_path)]


def test_writes_all_tables_and_the_summary(run, capsys):
    """Parquet and CSV of every table stand beside the summary, and one line says what was done."""
    out, arguments = run
    assert aggregate.main(arguments) == 0
    names = {path.name for path in out.parent.iterdir()}
    assert names >= {f"{table}.parquet" for table in TABLES} | {"summary.json", "static_facts.md"}
    assert names >= {f"{table}.csv" for table in TABLES if table != "samples"}
    assert "aggregate sample: 2 tasks, 48 variants, 43 measured · " in capsys.readouterr().err


def test_summary_reads_back(run):
    """Counts, winners, versions and the device are in it; a failed outcome has its own count."""
    out, arguments = run
    aggregate.main(arguments)
    summary = read_record(out, Summary)
    assert summary.stages["verify"] == {"passed": 44, "wrong_value": 1, "crashed": 1, "timeout": 1}
    assert [winner.cell.kernel for winner in summary.winners] == ["softmax", "rms_norm"]
    assert summary.toolchain["torch"] == ("2.13.0",)
    assert summary.targets[0].device["threads"] == "2"
    assert (summary.commits, summary.measured_from) == (("2f7c1ab90e11+",), "2025-03-04T10:20:30+00:00")


def test_equal_results_give_equal_tables(run):
    """Running again changes nothing but the time stamp of the summary."""
    out, arguments = run

    def tables() -> dict[str, bytes]:
        assert aggregate.main(arguments) == 0
        files = (path for path in out.parent.iterdir() if not path.name.startswith("summary.json"))
        return {path.name: path.read_bytes() for path in files}

    assert tables() == tables()


def test_missing_output_is_one_line(run, capsys, tmp_path):
    """A missing input ends with one line that names it, and leaves no summary behind."""
    out, arguments = run
    next((tmp_path / "compile").rglob("round0.json")).unlink()
    assert aggregate.main(arguments) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and "round0.json: cannot be read as CompileOutput" in line
    assert not out.exists()
