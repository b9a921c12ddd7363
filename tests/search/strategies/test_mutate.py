"""mutate: what the diagnosis of a parent calls for comes first, with the ground; nothing comes twice."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from pipeline.plan.tasks.search_inputs import files_of
from pipeline.records.configuration.search_settings import Search
from pipeline.records.errors import ConfigError
from pipeline.records.outcome import Outcome
from pipeline.records.results.diagnosed import Finding, FindingCode
from pipeline.records.results.profiled import ConfidenceInterval
from pipeline.records.search.search_trial import Trial
from pipeline.records.search.written_source import Proposal
from pipeline.search.proposed_variants import variants_of
from pipeline.search.rewriting.rewrite_catalogue import TRANSFORMATIONS
from pipeline.search.spaces.search_space import space_of
from pipeline.search.strategies import mutate
from pipeline.search.strategy import Budget, WriterContext
from tests.stages.test_generate import SPEC

TOY = """import triton
import triton.language as tl


@triton.jit
def add_up(x, y, n, BLOCK: tl.constexpr):
    sum = 0.0
    for start in range(0, n, BLOCK):
        sum += tl.sum(tl.load(x + start + tl.arange(0, BLOCK)))
    tl.store(y, sum)


def launch(*, x, y):
    add_up[(1,)](x, y, x.numel(), 64)
"""
FEW, MEMORY, COMPUTE = (
    FindingCode.FEW_LOADS_IN_FLIGHT,
    FindingCode.MEMORY_BOUND,
    FindingCode.COMPUTE_BOUND,
)


@pytest.fixture
def shop(tmp_path: Path) -> WriterContext:
    """A task with one Triton source that has one loop."""
    (tmp_path / "kernels/toy").mkdir(parents=True)
    (tmp_path / "kernels/toy/toy.py").write_text(TOY)
    search = Search(name="", description="", strategy="mutate", rounds=4, variants_per_round=4)
    toy = msgspec.structs.replace(
        SPEC.implementations["cpp"], backend="triton", source="kernels/toy/toy.py", entry="launch"
    )
    spec = msgspec.structs.replace(
        SPEC, search=search, implementations={"triton": toy}, source_digests={"triton": "0" * 20}
    )
    return WriterContext(spec=spec, repository=str(tmp_path), store=str(tmp_path / "store"))


def propose(
    shop: WriterContext, history: Sequence[Trial], round_number: int = 1, variants: int = 4
) -> list[Proposal]:
    """One round."""
    budget = Budget(round=round_number, rounds=4, variants=variants, variants_per_round=4, seed=0)
    budget = msgspec.structs.replace(budget, search=shop.spec.search)
    found = mutate.propose(space_of(shop.spec), history, budget, shop)
    return [each for each in found if isinstance(each, Proposal)]


def trials(
    shop: WriterContext, proposals: list[Proposal], seconds: float, *codes: FindingCode
) -> list[Trial]:
    """As if all of them had passed; each code with a gain, the first one with the least."""
    made = variants_of(shop.spec, proposals, repository=Path(shop.repository), store=Path(shop.store))
    median = ConfidenceInterval(value=seconds, low=seconds, high=seconds, confidence=0.95)
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


def two_loops(shop: WriterContext) -> None:
    """What was done to one of them can be done to the other one."""
    loop = TOY[TOY.index("    for start") : TOY.index("    tl.store")]
    text = TOY.replace(loop, loop + loop.replace("x + start", "x + n + start"))
    Path(shop.repository, "kernels/toy/toy.py").write_text(text)


def failed(trial: Trial) -> Trial:
    """It compiled to something wrong."""
    return msgspec.structs.replace(
        trial, stage="verify", outcome=Outcome.WRONG_VALUE, reason="off", seconds=None, diagnosis=()
    )


def remembering(shop: WriterContext, proposals: list[Proposal]) -> WriterContext:
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


def test_the_declared_default_comes_first(shop: WriterContext) -> None:
    """Nothing is known yet."""
    (found,) = propose(shop, [], 0)
    assert found.source is None


def test_the_greatest_gain_first_and_kinds_in_turn(shop: WriterContext) -> None:
    """What the finding with the greatest gain calls for stands before what the other one calls for."""
    start = propose(shop, [], 0)
    parent = trials(shop, start, 1.0, MEMORY, COMPUTE)
    assert names(propose(shop, parent)) == ["unroll=2", "stages=2", "unroll=4", "stages=3"]
    parent = trials(shop, start, 1.0, COMPUTE, MEMORY)
    assert names(propose(shop, parent)) == ["stages=2", "unroll=2", "stages=3", "unroll=4"]


def test_the_ground_is_recorded(shop: WriterContext) -> None:
    """Which finding, in whose words, what the rewrite does about it, and why the result stays."""
    parent = trials(shop, propose(shop, [], 0), 1.0, MEMORY)
    first = ground(propose(shop, parent)[0])
    assert first["called_for_by"] == "memory_bound (measured)"
    assert first["finding"] == "It is memory_bound."
    assert first["because"] == "loads of later iterations are under way"
    assert first["line"] == "8"
    assert "overlaps iterations" in first["keeps"]


def test_what_nothing_calls_for_comes_last(shop: WriterContext) -> None:
    """Unrolling brings no more bytes; it is tried when nothing else is left, and says so."""
    start = trials(shop, propose(shop, [], 0), 1.0, MEMORY)
    found = propose(shop, start, variants=100)
    called = [ground(each)["called_for_by"] for each in found]
    assert called == sorted(called, key="nothing".__eq__)
    uncalled = [each for each in found if ground(each)["called_for_by"] == "nothing"]
    assert set(names(uncalled)) == {"unroll=2", "unroll=4"}
    assert "finding" not in ground(uncalled[0])


def test_nothing_comes_twice(shop: WriterContext) -> None:
    """What was tried is not tried again, and the fastest becomes the parent."""
    start = trials(shop, propose(shop, [], 0), 1.0, FEW)
    first = propose(shop, start)
    history = [*start, *trials(shop, first, 0.5, FEW)]
    second = propose(shop, history, 2)
    texts = [each.source.text for each in (*first, *second) if each.source]
    assert len(set(texts)) == len(texts) == 8
    assert second[0].source is not None
    assert second[0].source.parents == (history[1].variant.id,)


def test_what_only_did_harm_comes_last(shop: WriterContext) -> None:
    """A kind that made its parent slower, or failed, is tried on the next parent after all others."""
    two_loops(shop)
    start = trials(shop, propose(shop, [], 0), 1.0, FEW)
    first = propose(shop, start)
    slower, broken, equal, faster = first
    history = [
        *start,
        *trials(shop, [slower], 1.5),
        *(failed(each) for each in trials(shop, [broken], 1.0)),
        *trials(shop, [equal], 1.0),
        *trials(shop, [faster], 0.5, FEW),
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


def test_what_did_good_once_is_not_harmful(shop: WriterContext) -> None:
    """One parent was slower with it, another one was not: its place stays."""
    two_loops(shop)
    start = trials(shop, propose(shop, [], 0), 1.0, FEW)
    first = propose(shop, start, variants=1)
    history = [*start, *trials(shop, first, 0.5, FEW)]
    second = propose(shop, history, 2, variants=100)
    again = [each for each in second if names([each]) == names(first)][:1]
    history += trials(shop, again, 2.0, FEW)
    assert names(propose(remembering(shop, [*first, *again]), history, 3, variants=100)) == names(
        propose(shop, history, 3, variants=100)
    )


def test_a_folder_to_begin_with(shop: WriterContext) -> None:
    """Its sources are measured beside the declared one, and only they are rewritten."""
    folder = Path(shop.repository, "mine")
    folder.mkdir()
    (folder / "other.py").write_text(
        TOY.replace("sum +=", "all +=").replace("sum = 0.0", "all = 0.0").replace("y, sum", "y, all")
    )
    search = msgspec.structs.replace(shop.spec.search, settings={"mutate": {"folder": "mine"}})
    files = files_of("mine", Path(shop.repository), setting="search.mutate.folder")
    shop = msgspec.structs.replace(shop, spec=msgspec.structs.replace(shop.spec, search=search, files=files))
    start = propose(shop, [], 0)
    assert [each.source and each.source.author.name for each in start] == [None, "other.py"]
    history = [*trials(shop, start[:1], 0.5), *trials(shop, start[1:], 1.0)]
    assert all("all += " in each.source.text for each in propose(shop, history) if each.source)


def test_every_finding_that_calls_says_why() -> None:
    """The catalogue's sentences are told to users: none is empty, and some finding calls for each rewrite."""
    for transformation in TRANSFORMATIONS.values():
        assert transformation.called_for_by
        assert all(transformation.called_for_by.values()) and transformation.keeps


def test_a_target_without_triton_is_refused(shop: WriterContext) -> None:
    """Got, and what to do instead."""
    cpp = {"cpp": SPEC.implementations["cpp"]}
    shop = msgspec.structs.replace(shop, spec=msgspec.structs.replace(shop.spec, implementations=cpp))
    with pytest.raises(ConfigError, match=r"toy has none for this target \(it has: cpp\)"):
        propose(shop, [], 0)
