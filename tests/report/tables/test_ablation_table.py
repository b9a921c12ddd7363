"""What each technique is worth: the right variants are compared, and what has no time says why."""

from types import SimpleNamespace

import msgspec
import pytest

from pipeline.records.configuration.kernel import Constraint, Implementation, Tunable
from pipeline.records.configuration.optimization import Optimization
from pipeline.records.outcome import Outcome
from pipeline.records.results.collection import Collected, Result
from pipeline.records.results.profiled import ConfidenceInterval, Timing
from pipeline.report.tables.ablation_table import AblationTable, ablation_table, find_ablations
from tests.report.sample_run import CPP

DECLARED = Implementation(
    backend="cpp",
    tunables={
        "unroll": Tunable(values=CPP["unroll"], default=1, technique="unrolling", off=1),
        "vectorize": Tunable(values=CPP["vectorize"], default=False, technique="vectorization", off=False),
        "threads_grain": Tunable(values=CPP["threads_grain"], default=1),
    },
    origin="own",
    licence="Apache-2.0",
)


def only(collected: Collected, workload: str) -> tuple[Result, ...]:
    """Results of softmax on a workload."""
    return tuple(
        each
        for each in collected.results
        if (each.task.kernel, each.task.workload, each.task.hardware) == ("softmax", workload, "cpu")
    )


def seen(
    results: tuple[Result, ...], *, strategy: str = "grid", rounds: int = 1, rule: str = ""
) -> Collected:
    """They alone, of a search of that strategy; a rule excludes what it says."""
    rules = (Constraint(rule=rule, reason="because"),) if rule else ()
    spec = SimpleNamespace(
        implementations={"cpp": msgspec.structs.replace(DECLARED, constraints=rules)},
        search=SimpleNamespace(strategy=strategy, rounds=rounds),
        optimization=Optimization(name="full", description=""),
        problem=SimpleNamespace(element="float32", attributes={}, dimensions={}),
        limits={},
    )
    return Collected(results=results, generated=(), declared={results[0].task.generate: spec})  # type: ignore[dict-item]


def time_of(result: Result) -> float:
    """Seconds; infinite where it has none."""
    return result.profiled.timing.median.value if result.profiled else float("inf")


def slowed(result: Result, factor: float, *, keep: bool) -> Result:
    """The same where the machine took so many times as long, for the baselines too; without them, or with."""
    assert result.profile is not None
    assert result.profiled is not None

    def timing(of: Timing) -> Timing:
        median = ConfidenceInterval(
            value=of.median.value * factor,
            low=of.median.low * factor,
            high=of.median.high * factor,
            confidence=of.median.confidence,
        )
        samples = tuple(each * factor for each in of.samples)
        return msgspec.structs.replace(of, samples=samples, median=median)

    comparisons = tuple(
        msgspec.structs.replace(each, timing=timing(each.timing)) for each in result.profiled.comparisons
    )
    profiled = msgspec.structs.replace(
        result.profiled, timing=timing(result.profiled.timing), comparisons=comparisons if keep else ()
    )
    return msgspec.structs.replace(result, profile=msgspec.structs.replace(result.profile, result=profiled))


def test_a_drift_of_the_machine_cancels_where_a_baseline_ran_beside(collected: Collected) -> None:
    """Twice as slow a machine later is no worth of a technique; without a baseline it looks so."""
    results = only(collected, "awkward")
    chosen = {"unroll": 4, "vectorize": True, "threads_grain": 16}

    def ratios(factor: float, *, keep: bool) -> list[float]:
        later = tuple(
            msgspec.structs.replace(
                slowed(each, 1.0 if each.variant.tunables == chosen else factor, keep=keep),
                default=each.variant.tunables == chosen,
            )
            for each in results
        )
        found = find_ablations(seen(later, strategy="ablation"))
        assert {each.beside for each in found} == ({"eager"} if keep else {None})
        return [each.ratio.value for each in found if each.ratio]

    assert ratios(2.0, keep=True) == pytest.approx(ratios(1.0, keep=True))
    doubled = [2 * each for each in ratios(1.0, keep=False)]
    assert ratios(2.0, keep=False) == pytest.approx(doubled)


def test_a_grid_compares_its_best(collected: Collected) -> None:
    """With each technique off, all else equal, and the ratio is that of the medians."""
    results = tuple(slowed(each, 1.0, keep=False) for each in only(collected, "awkward"))
    best = min(results, key=time_of)
    found = find_ablations(seen(results))
    assert found
    assert {each.best.id for each in found} == {best.id}
    for each in found:
        assert each.along == ()
        assert each.ratio is not None
        assert each.beside is None
        assert each.ratio.value == pytest.approx(time_of(each.without) / time_of(best))
        assert each.ratio.low <= each.ratio.value <= each.ratio.high
    on = {name for name in ("unroll", "vectorize") if best.variant.tunables[name] not in (1, False)}
    words = {"unroll": "unrolling", "vectorize": "vectorization"}
    assert {words[name] for name in on} <= {each.technique for each in found}


def test_an_ablation_compares_what_it_began_from(collected: Collected) -> None:
    """A faster variant of its last round is not taken for the best: nothing was tried around it."""
    results = only(collected, "awkward")
    fastest, *_ = sorted(results, key=time_of)
    later = tuple(msgspec.structs.replace(each, round=1 if each.id == fastest.id else 0) for each in results)
    found = find_ablations(seen(later, strategy="ablation", rounds=2))
    began = min((each for each in later if each.round == 0), key=time_of)
    assert found
    assert {each.best.id for each in found} == {began.id}


def test_an_ablation_of_one_round_compares_the_default(collected: Collected) -> None:
    """Whatever is faster."""
    chosen = {"unroll": 4, "vectorize": True, "threads_grain": 16}
    results = tuple(
        msgspec.structs.replace(each, default=each.variant.tunables == chosen)
        for each in only(collected, "awkward")
    )
    found = find_ablations(seen(results, strategy="ablation"))
    assert {tuple(sorted(each.best.variant.tunables.items())) for each in found} == {
        tuple(sorted(chosen.items()))
    }
    assert [each.technique for each in found] == ["unrolling", "vectorization", "threads_grain"]


def test_what_a_rule_makes_change_along_is_told(collected: Collected) -> None:
    """The row says which tunables differ beside the technique's own."""
    results = only(collected, "awkward")
    chosen = {"unroll": 8, "vectorize": True, "threads_grain": 16}
    marked = tuple(msgspec.structs.replace(each, default=each.variant.tunables == chosen) for each in results)
    found = find_ablations(seen(marked, strategy="ablation", rule="vectorize or unroll <= 4"))
    row = {each["technique"]: each for each in ablation_table(found).to_pylist()}["vectorization"]
    assert (row["changed"], row["along"]) == ("vectorize=True -> False", "unroll=8 -> 4")


def test_what_failed_has_its_outcome_and_no_time(collected: Collected) -> None:
    """It comes after what has a time."""
    results = only(collected, "llama3_8b_decode")
    failed = next(each for each in results if each.outcome is Outcome.WRONG_VALUE)
    assert failed.variant.tunables["unroll"] == 1
    chosen = {**failed.variant.tunables, "unroll": 2}
    marked = tuple(msgspec.structs.replace(each, default=each.variant.tunables == chosen) for each in results)
    found = find_ablations(seen(marked, strategy="ablation"))
    rows = ablation_table(found).to_pylist()
    assert [(row["technique"], row["verdict"]) for row in rows[1:]] == [
        ("unrolling", "wrong_value"),
        ("threads_grain", "crashed"),
    ]
    assert rows[0]["technique"] == "vectorization"
    assert rows[0]["time_ratio"] is not None
    assert (rows[1]["seconds"], rows[1]["time_ratio"], rows[1]["confidence"]) == (None, None, None)
    assert rows[1]["variant"] == failed.id


@pytest.mark.parametrize(
    ("ratio", "one", "several"), [(1.05, "indistinguishable", "pays"), (1.3, "pays", "pays")]
)
def test_one_process_each_tells_no_small_worth(
    collected: Collected, ratio: float, one: str, several: str
) -> None:
    """Where two processes lie in memory is no technique; where each was timed in several, that is known."""

    def times(result: Result, counts: tuple[int, ...]) -> Result:
        assert result.profiled is not None
        timing = msgspec.structs.replace(result.profiled.timing, processes=counts)
        profiled = msgspec.structs.replace(result.profiled, timing=timing)
        return msgspec.structs.replace(
            result, profile=msgspec.structs.replace(result.profile, result=profiled)
        )

    best = only(collected, "awkward")[0]
    assert best.profiled is not None
    count = len(best.profiled.timing.samples)
    for counts, said in (((), one), ((2, count - 2), several)):
        each = times(best, counts)
        found = AblationTable(
            best=each,
            without=each,
            technique="unrolling",
            changed=(),
            along=(),
            ratio=ConfidenceInterval(value=ratio, low=ratio - 0.01, high=ratio + 0.01, confidence=0.95),
        )
        assert found.verdict == said
