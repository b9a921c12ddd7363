"""What each technique is worth: the right variants are compared, and what has no time says why."""

from types import SimpleNamespace

import msgspec
import pytest

from pipeline.records.configuration.kernel import Constraint, Implementation, Tunable
from pipeline.records.configuration.optimization import Optimization
from pipeline.records.outcome import Outcome
from pipeline.records.results.collection import Collected, Result
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
    return result.profiled.time.value if result.profiled else float("inf")


def test_every_ratio_is_that_of_the_times_beside_it(collected: Collected) -> None:
    """So is its interval about it, and the verdict follows from the interval and the row's threshold."""
    results = only(collected, "awkward")
    rows = ablation_table(find_ablations(seen(results))).to_pylist()
    assert rows
    for row in rows:
        assert row["time_ratio"] == pytest.approx(row["seconds"] / row["best_seconds"])
        assert row["time_ratio_low"] <= row["time_ratio"] <= row["time_ratio_high"]
        pays, costs = (
            row["time_ratio_low"] > row["threshold"],
            row["time_ratio_high"] < 1 / row["threshold"],
        )
        assert row["verdict"] == ("pays" if pays else "costs" if costs else "indistinguishable")


def test_a_grid_compares_its_best(collected: Collected) -> None:
    """With each technique off, all else equal, and the ratio is that of the times."""
    results = only(collected, "awkward")
    best = min(results, key=time_of)
    found = find_ablations(seen(results))
    assert found
    assert {each.best.id for each in found} == {best.id}
    for each in found:
        assert each.along == ()
        assert each.ratio is not None
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

    def times(result: Result, factor: float, counts: tuple[int, ...]) -> Result:
        assert result.profiled is not None
        timing = msgspec.structs.replace(
            result.profiled.timing, processes=counts, median=result.profiled.timing.median.scaled(factor)
        )
        profiled = msgspec.structs.replace(result.profiled, timing=timing)
        return msgspec.structs.replace(
            result, profile=msgspec.structs.replace(result.profile, result=profiled)
        )

    best = only(collected, "awkward")[0]
    assert best.profiled is not None
    count = len(best.profiled.timing.samples)
    for counts, said in (((), one), ((2, count - 2), several)):
        found = AblationTable(
            best=times(best, 1.0, counts),
            without=times(best, ratio, counts),
            technique="unrolling",
            changed=(),
            along=(),
        )
        assert found.verdict == said
