"""mutate: what the diagnosis of a parent calls for comes first, with the ground; nothing comes twice."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from pipeline.plan.tasks.search_inputs import files_of
from pipeline.records.configuration.search_settings import Search
from pipeline.records.outcome import Outcome
from pipeline.records.results.diagnosed import Finding, FindingCode
from pipeline.records.results.profiled import Interval
from pipeline.records.search.search_trial import Trial
from pipeline.records.search.written_source import Proposal
from pipeline.search import mutate
from pipeline.search.rewriting.catalogue import LANGUAGES
from pipeline.search.space import space_of
from pipeline.search.strategy import Budget
from pipeline.search.variants import variants_of
from pipeline.search.writer import Workshop
from tests.stages.test_generate import SPEC

TOY = """extern "C" int toy(const float* x, float* y, long n) {
    float sum = 0.0f;
    for (long i = 0; i < n; ++i) {
        sum += x[i];
    }
    y[0] = sum;
    return 0;
}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    """A task with one C++ source that has one loop."""
    (tmp_path / "kernels/toy").mkdir(parents=True)
    (tmp_path / "kernels/toy/toy.cpp").write_text(TOY)
    search = Search(name="", description="", strategy="mutate", rounds=4, variants_per_round=4)
    spec = msgspec.structs.replace(SPEC, search=search)
    return Workshop(spec=spec, repository=str(tmp_path), store=str(tmp_path / "store"))


def propose(
    shop: Workshop, history: Sequence[Trial], round_number: int = 1, variants: int = 4
) -> list[Proposal]:
    """One round."""
    budget = Budget(round=round_number, rounds=4, variants=variants, variants_per_round=4, seed=0)
    found = mutate.propose(space_of(shop.spec), history, budget, shop)
    return [each for each in found if isinstance(each, Proposal)]


def trials(shop: Workshop, proposals: list[Proposal], seconds: float, *codes: FindingCode) -> list[Trial]:
    """As if all of them had passed; each code with a gain, the first one with the least."""
    made = variants_of(shop.spec, proposals, repository=Path(shop.repository), store=Path(shop.store))
    median = Interval(value=seconds, low=seconds, high=seconds, confidence=0.95)
    findings = tuple(
        Finding(
            code=code, basis="measured", sentence=f"It is {code}.", evidence=(), gain_at_most=1.0 + number
        )
        for number, code in enumerate(codes)
    )
    return [
        Trial(
            variant=each, round=0, stage="profile", outcome=Outcome.PASSED, seconds=median, diagnosis=findings
        )
        for each in made.variants
    ]


def two_loops(shop: Workshop) -> None:
    """What was done to one of them can be done to the other one."""
    again = TOY[TOY.index("    float sum") : TOY.index("    y[0]")].replace("sum", "more")
    text = TOY.replace("    y[0] = sum;", f"{again}    y[0] = sum + more;")
    Path(shop.repository, "kernels/toy/toy.cpp").write_text(text)


def failed(trial: Trial) -> Trial:
    """It compiled to something wrong."""
    return msgspec.structs.replace(
        trial, stage="verify", outcome=Outcome.WRONG_VALUE, reason="off", seconds=None, diagnosis=()
    )


def remembering(shop: Workshop, proposals: list[Proposal]) -> Workshop:
    """With what generate recorded of them."""
    made = variants_of(shop.spec, proposals, repository=Path(shop.repository), store=Path(shop.store))
    return msgspec.structs.replace(shop, records=made.records)


def names(proposals: list[Proposal]) -> list[str]:
    """Of the rewrites."""
    return [each.source.author.name for each in proposals if each.source]


def ground(proposal: Proposal) -> dict[str, str]:
    """What is recorded of a rewrite."""
    assert proposal.source is not None
    return proposal.source.author.details


def test_the_declared_default_comes_first(shop: Workshop) -> None:
    """Nothing is known yet."""
    (found,) = propose(shop, [], 0)
    assert found.source is None


def test_the_greatest_gain_first_and_kinds_in_turn(shop: Workshop) -> None:
    """What the finding with the greatest gain calls for stands before what the other one calls for."""
    start = propose(shop, [], 0)
    parent = trials(shop, start, 1.0, FindingCode.NO_VECTORS, FindingCode.COMPUTE_BOUND)
    assert names(propose(shop, parent)) == ["vector width=4", "split-K=2", "unroll=2", "ivdep"]
    parent = trials(shop, start, 1.0, FindingCode.COMPUTE_BOUND, FindingCode.NO_VECTORS)
    assert names(propose(shop, parent)) == ["vector width=4", "split-K=2", "ivdep", "unroll=2"]


def test_the_ground_is_recorded(shop: Workshop) -> None:
    """Which finding, in whose words, what the rewrite does about it, and why the result stays."""
    parent = trials(shop, propose(shop, [], 0), 1.0, FindingCode.NO_VECTORS)
    first = ground(propose(shop, parent)[0])
    assert first["called_for_by"] == "no_vectors (measured)"
    assert first["finding"] == "It is no_vectors."
    assert first["because"] == "iterations run in lanes of one vector"
    assert first["line"] == "3"
    assert "declared as reductions" in first["keeps"]


def test_what_nothing_calls_for_comes_last(shop: Workshop) -> None:
    """Unrolling does nothing for a start of a call; it is tried when nothing else is left, and says so."""
    start = trials(shop, propose(shop, [], 0), 1.0, FindingCode.NO_VECTORS)
    found = propose(shop, start, variants=100)
    called = [ground(each)["called_for_by"] for each in found]
    assert called == sorted(called, key="nothing".__eq__)
    uncalled = [each for each in found if ground(each)["called_for_by"] == "nothing"]
    assert set(names(uncalled)) == {"unroll=2", "unroll=4", "unroll=8"}
    assert "finding" not in ground(uncalled[0])


def test_nothing_comes_twice(shop: Workshop) -> None:
    """What was tried is not tried again, and the fastest becomes the parent."""
    start = trials(shop, propose(shop, [], 0), 1.0, FindingCode.NO_VECTORS)
    first = propose(shop, start)
    history = [*start, *trials(shop, first, 0.5, FindingCode.NO_VECTORS)]
    second = propose(shop, history, 2)
    texts = [each.source.text for each in (*first, *second) if each.source]
    assert len(set(texts)) == len(texts) == 8
    assert second[0].source is not None
    assert second[0].source.parents == (history[1].variant.id,)


def test_what_only_did_harm_comes_last(shop: Workshop) -> None:
    """A kind that made its parent slower, or failed, is tried on the next parent after all others."""
    two_loops(shop)
    start = trials(shop, propose(shop, [], 0), 1.0, FindingCode.NO_VECTORS)
    first = propose(shop, start)
    slower, broken, equal, faster = first
    history = [
        *start,
        *trials(shop, [slower], 1.5),
        *(failed(each) for each in trials(shop, [broken], 1.0)),
        *trials(shop, [equal], 1.0),
        *trials(shop, [faster], 0.5, FindingCode.NO_VECTORS),
    ]
    harmful = set(names([slower, broken]))
    unknown = [name in harmful for name in names(propose(shop, history, 2, variants=100))]
    assert unknown != sorted(unknown)  # who wrote them is not known there
    found = names(propose(remembering(shop, first), history, 2, variants=100))
    after = [name in harmful for name in found]
    assert after == sorted(after)
    assert True in after and False in after
    kept = [name for name in found if name not in harmful]
    assert names(propose(remembering(shop, first), history, 2, variants=2)) == kept[:2]


def test_what_did_good_once_is_not_harmful(shop: Workshop) -> None:
    """One parent was slower with it, another one was not: its place stays."""
    two_loops(shop)
    start = trials(shop, propose(shop, [], 0), 1.0, FindingCode.NO_VECTORS)
    first = propose(shop, start, variants=1)
    history = [*start, *trials(shop, first, 0.5, FindingCode.NO_VECTORS)]
    second = propose(shop, history, 2, variants=100)
    again = [each for each in second if names([each]) == names(first)][:1]
    history += trials(shop, again, 2.0, FindingCode.NO_VECTORS)
    assert names(propose(remembering(shop, [*first, *again]), history, 3, variants=100)) == names(
        propose(shop, history, 3, variants=100)
    )


def test_a_folder_to_begin_with(shop: Workshop) -> None:
    """Its sources are measured beside the declared one, and only they are rewritten."""
    folder = Path(shop.repository, "mine")
    folder.mkdir()
    (folder / "other.cpp").write_text(TOY.replace("sum", "all"))
    search = msgspec.structs.replace(shop.spec.search, folder="mine")
    files = files_of("mine", Path(shop.repository))
    shop = msgspec.structs.replace(shop, spec=msgspec.structs.replace(shop.spec, search=search, files=files))
    start = propose(shop, [], 0)
    assert [each.source and each.source.author.name for each in start] == [None, "other.cpp"]
    history = [*trials(shop, start[:1], 0.5), *trials(shop, start[1:], 1.0)]
    assert all("all += " in each.source.text for each in propose(shop, history) if each.source)


def test_every_finding_that_calls_says_why() -> None:
    """The catalogue's sentences are told to users: none is empty, and some finding calls for each rewrite."""
    for kinds in LANGUAGES.values():
        for transformation in kinds.values():
            assert transformation.called_for_by
            assert all(transformation.called_for_by.values()) and transformation.keeps
