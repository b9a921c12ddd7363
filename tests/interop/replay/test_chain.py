"""The whole pipeline on recorded measurements: every place says so, and every figure is recorded."""

import csv
import statistics
from pathlib import Path

import pytest

from pipeline.interop.formats.format_registry import read_recorded
from pipeline.records.layout import spec_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.record import read_record
from pipeline.records.results.aggregated import Summary, Winner
from pipeline.records.results.compiled import CompileOutput
from pipeline.records.results.profiled import Profiled, ProfileOutput
from pipeline.records.results.tracked import Tracked, TrackOutput
from pipeline.search.trial_history import read_history
from pipeline.track.stores.mlflow_store import open_store
from tests.interop.formats.recorded import recorded
from tests.interop.replay.chain import Chain
from tests.interop.replay.recordings import written

RECORDED = ("kernel=recorded", "workload=recorded", "optimization=full", "hardware=recorded")


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """The toy's eight points, six of which were recorded, all of them proposed."""
    folder = tmp_path_factory.mktemp("replay")
    chain = Chain(folder / "store", *RECORDED, "search=grid", f"hardware.recorded={written(folder)}")
    chain.run()
    return chain


@pytest.mark.slow
def test_every_recorded_outcome_is_there(chain: Chain) -> None:
    """At its stage, with the file's reason; what has no record has an outcome of its own."""
    with (chain.summary.parent / "variants.csv").open(newline="") as file:
        rows = {row["configuration"]: row for row in csv.DictReader(file)}
    assert {name: row["outcome"] for name, row in rows.items()} == {
        "block=64 unroll=1": "passed",
        "block=128 unroll=1": "passed",
        "block=256 unroll=1": "compile_error",
        "block=512 unroll=1": "launch_error",
        "block=64 unroll=2": "wrong_value",
        "block=128 unroll=2": "timeout",
        "block=256 unroll=2": "not_recorded",
        "block=512 unroll=2": "not_recorded",
    }
    assert rows["block=512 unroll=1"]["reason"] == "recorded: runtime"
    assert all(row["recorded"].startswith("Some GPU, recorded in toy.json (") for row in rows.values())
    assert {row["median_seconds"] for row in rows.values() if row["outcome"] != "passed"} == {""}


@pytest.mark.slow
def test_figures_are_the_recorded_ones(chain: Chain) -> None:
    """Samples, compile seconds, energy; nothing is known of baselines and ceilings."""
    profiled = read_record(chain.out("profile"), ProfileOutput)
    (slow, fast) = [record.result for record in profiled.records]
    assert isinstance(slow, Profiled) and isinstance(fast, Profiled)
    assert slow.timing.samples == pytest.approx((2e-3, 1e-3, 1.5e-3, 1.25e-3))
    assert fast.timing.median.value == pytest.approx(1.375e-3 / 2)
    assert fast.energy is not None and fast.energy.joules == 0.5 and slow.energy is None
    assert fast.comparisons == () and fast.ceilings is None
    compiled = read_record(chain.out("compile"), CompileOutput)
    assert [record.seconds for record in compiled.records[:2]] == pytest.approx([0.5, 0.5])
    failures = [record.result for record in compiled.records if isinstance(record.result, Failure)]
    assert [each.outcome for each in failures].count(Outcome.NOT_RECORDED) == 2


@pytest.mark.slow
def test_the_winner_says_that_it_was_recorded(chain: Chain, capsys: pytest.CaptureFixture[str]) -> None:
    """No speed-up, no share of a roofline; in the summary, in the text for the terminal, on the page."""
    from pipeline.report.summary import summary_text

    summary = read_record(chain.summary, Summary)
    (winner,) = summary.winners
    assert isinstance(winner, Winner) and winner.tunables == {"block": 128, "unroll": 1}
    assert winner.recorded is not None and winner.compared == () and winner.roofline_share is None
    assert winner.where == "recorded" and summary.measured_from is None
    text = summary_text(summary)
    assert "recorded measurements, not made here: Some GPU, recorded in toy.json (" in text
    page = chain.page.read_text()
    assert "recorded, not measured here" in page and "nowhere here" in page
    assert "no ceilings: not measured here" in page


@pytest.mark.slow
def test_mlflow_says_that_it_was_recorded(chain: Chain) -> None:
    """As the status of each run and as a tag with device, file and digest."""
    spec = read_record(spec_path(chain.store, "aggregate", chain.aggregate), AggregateSpec)
    result = read_record(chain.tracked, TrackOutput).result
    assert isinstance(result, Tracked) and result.measured.new == 2
    client = open_store(spec.tracking, chain.store).client
    names = {each.name: each.experiment_id for each in client.search_experiments()}
    runs = client.search_runs([names[spec.tracking.experiment]])
    assert {run.data.tags["status"] for run in runs} == {"recorded"}
    assert all(run.data.tags["recorded"].startswith("Some GPU, recorded in toy.json") for run in runs)
    assert {run.data.tags["device"] for run in runs} == {"Some GPU"}


@pytest.mark.parametrize("search", [pytest.param("random", marks=pytest.mark.slow), "successive_halving"])
def test_a_search_on_a_public_space(search: str, tmp_path: Path) -> None:
    """Rounds learn from what was recorded; each median is that of the recorded samples."""
    results, t1 = recorded("convolution_milo_A100.json.gz"), recorded("convolution_milo.T1.json")
    chain = Chain(
        tmp_path / "store",
        *(*RECORDED, f"search={search}", "search.rounds=3", "search.variants_per_round=6"),
        *("tracking=disabled", f"hardware.recorded={results}", f"kernel.space={t1}"),
    )
    chain.run()
    outputs = [chain.out(stage, number) for number in range(3) for stage in ("compile", "verify", "profile")]
    trials = read_history(outputs)
    times = {
        tuple(sorted(each.tunables.items())): each.samples
        for each in read_recorded(results).results
        if each.samples
    }
    full = [trial for trial in trials if trial.seconds is not None]
    assert full and all(trial.spent > 0 for trial in full)
    for trial in full:
        samples = times[tuple(sorted(trial.variant.tunables.items()))]
        assert trial.seconds is not None
        assert trial.seconds.value == pytest.approx(statistics.median(samples))
        assert trial.samples == pytest.approx(samples)
    brief = [trial for trial in trials if trial.outcome is Outcome.SCREENED]
    assert bool(brief) == (search == "successive_halving")
