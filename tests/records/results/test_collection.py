import msgspec
import pytest

from pipeline.records.errors import StoreError
from pipeline.records.outcome import Outcome
from pipeline.records.results.collection import collect, on_equal_ceilings
from tests.report.sample_run import cases, write_run


def test_every_proposed_variant_has_one_result(collected):
    """Nothing is dropped on the way: task x variant pairs come back as they were generated."""
    generated = sum(len(made.variants) for _, made in collected.generated)
    pairs = {(result.task.task, result.id) for result in collected.results}
    assert len(collected.results) == len(pairs) == generated


def test_outcome_is_the_first_failure(collected):
    """A variant that failed verify has no profile record, and its stage is the one that failed."""
    (crashed,) = [result for result in collected.results if result.outcome is Outcome.CRASHED]
    assert crashed.stage == "verify"
    assert crashed.compiled and crashed.verified is None and crashed.profile is None


def test_log_of_a_failure_is_found(collected, root):
    """The path of a log leads to the file that the stage kept."""
    failed = [result for result in collected.results if result.failure and result.failure.log]
    assert failed
    assert all((root / result.log).is_file() for result in failed)


def test_default_is_known_from_the_plan(collected):
    """Exactly one variant per task has the declared defaults."""
    defaults = [result.task.task for result in collected.results if result.default]
    assert len(defaults) == len(set(defaults)) == 26


def test_ceilings_that_were_measured_again_hold_for_all(collected):
    """A result that came before them lies under the same roofline as the others."""
    task = next(each.task for each in collected.results if each.profiled and each.profiled.ceilings)
    of_task = [each for each in collected.results if each.task.task == task.task]
    old = next(each for each in of_task if each.profiled and each.profiled.roofline_share)
    lower = msgspec.structs.replace(
        old.profiled.ceilings,
        cache_bandwidth=old.profiled.ceilings.cache_bandwidth / 2,
        vector_flops=old.profiled.ceilings.vector_flops / 2,
        matrix_flops=old.profiled.ceilings.matrix_flops / 2,
    )
    share = 2 * old.profiled.roofline_share
    before = msgspec.structs.replace(old.profiled, ceilings=lower, roofline_share=share)
    record = msgspec.structs.replace(old.profile, result=before)
    mixed = [msgspec.structs.replace(old, profile=record), *of_task]
    (first, *others) = on_equal_ceilings(mixed, task.unit)
    assert others == of_task
    assert first.profiled.ceilings == old.profiled.ceilings
    assert first.profiled.roofline_share == pytest.approx(old.profiled.roofline_share)


def test_results_without_their_plan(tmp_path):
    """Results brought home without the plan's specs are read; what only the plan knows is absent."""
    spec = write_run(tmp_path, cases()[:1])
    for path in (tmp_path / "plan" / "compile").iterdir():
        path.unlink()
    results = collect(spec, tmp_path).results
    assert {(result.default, result.architecture) for result in results} == {(None, None)}


def test_missing_output_names_the_file(tmp_path):
    """A missing output is an error that names it, not an empty table."""
    spec = write_run(tmp_path, cases()[:1])
    (tmp_path / "verify" / spec.tasks[0].verify / "round0.json").unlink()
    with pytest.raises(StoreError, match=r"verify/.*round0\.json: cannot be read as VerifyOutput"):
        collect(spec, tmp_path)


def test_variant_proposed_twice_counts_once(tmp_path):
    """A search that proposes a variant again in a later round does not double its row."""
    spec = write_run(tmp_path, cases()[:1])
    (task,) = spec.tasks
    for stage in ("generate", "compile", "verify", "profile"):
        folder = tmp_path / stage / getattr(task, stage)
        (folder / "round1.json").write_bytes((folder / "round0.json").read_bytes())
    twice = msgspec.structs.replace(spec, tasks=(msgspec.structs.replace(task, rounds=2),))
    assert len(collect(twice, tmp_path).results) == len(collect(spec, tmp_path).results) == 24
