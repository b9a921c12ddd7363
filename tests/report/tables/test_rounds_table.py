"""The table of rounds: best so far falls, what was spent grows, and the end has its reason."""

import msgspec

from pipeline.records.configuration.search_settings import Stop
from pipeline.records.results.collection import Collected
from pipeline.report.tables.rounds_table import find_rounds, rounds_table


def test_one_round_of_each_task(collected: Collected) -> None:
    """The sample's tasks have one round: all of their results are in it."""
    rounds = find_rounds(collected)
    assert len(rounds) == len(collected.generated)
    for each in rounds:
        results = [result for result in collected.results if result.task == each.task]
        assert each.proposed == each.screened + each.pruned + each.failed + each.measured == len(results)
        measured = [result.profiled for result in results if result.profiled]
        best = min((each.timing.median.value for each in measured), default=None)
        assert best == (each.best.profiled.timing.median.value if each.best and each.best.profiled else None)


def test_a_second_round(collected: Collected) -> None:
    """A round that proposes nothing keeps the best and says why."""
    task, generated = collected.generated[0]
    stop = Stop(kind="variants", reason="the budget of 5 variants is spent")
    second = msgspec.structs.replace(generated, round=1, variants=(), stop=stop)
    rounds = find_rounds(msgspec.structs.replace(collected, generated=((task, generated), (task, second))))
    first, last = rounds
    assert (last.proposed, last.variants, last.spent) == (0, first.variants, first.spent)
    assert last.best == first.best
    row = rounds_table(rounds).to_pylist()[1]
    assert (row["stop"], row["reason"]) == ("variants", "the budget of 5 variants is spent")


def test_an_equal_time_is_no_better_one(collected: Collected) -> None:
    """The best so far stays that of the earlier round, which is the winner as well."""
    task, generated = collected.generated[0]
    now = [result for result in collected.results if result.task == task]
    again = tuple(msgspec.structs.replace(result, round=1, id=f"again {result.id}") for result in now)
    second = msgspec.structs.replace(generated, round=1)
    both = ((task, generated), (task, second))
    first, last = find_rounds(msgspec.structs.replace(collected, generated=both, results=(*now, *again)))
    assert first.best is not None
    assert last.best == first.best
