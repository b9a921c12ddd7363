"""Check what the schema of a search cannot say. In: a search. Out: its problems, one line each."""

from collections.abc import Iterator

from pipeline.records.search import Search
from pipeline.search.registry import NAMES, members

_WRITING = ("candidates", "inductor", "mutate")
_FROM_FOLDERS = ("candidates", "mutate")


def search_problems(search: Search) -> Iterator[str]:
    """Budgets, rounds, settings of other strategies, sources; each line begins with the key."""
    if search.rounds < 1:
        yield f"rounds: expected at least 1, got {search.rounds}"
    if search.variants_per_round is not None and search.variants_per_round < 1:
        yield f"variants_per_round: expected at least 1, got {search.variants_per_round}"
    if search.rounds > 1 and search.variants_per_round is None:
        yield "variants_per_round: several rounds need a number, or the first one takes all"
    for budget in ("variants", "seconds", "joules"):
        if (value := getattr(search, budget)) is not None and value <= 0:
            yield f"{budget}: expected more than 0, got {value:g}"
    for name in NAMES:
        if name not in members(search) and getattr(search, name, None) is not None:
            yield f"{name}: settings of another strategy; got strategy: {search.strategy}"
    ladder = search.successive_halving
    if search.strategy == "successive_halving" and search.rounds < (rungs := ladder.rungs if ladder else 3):
        yield f"rounds: a bracket has {rungs} rungs, got {search.rounds}: nothing would be measured fully"
    yield from _writing(search)


def _writing(search: Search) -> Iterator[str]:
    """Strategies that write sources."""
    if search.folder == "":
        yield "folder: empty; a folder of sources, or null"
    elif search.strategy == "candidates" and search.folder is None:
        yield "folder: the strategy candidates needs one"
    elif search.folder is not None and search.strategy not in _FROM_FOLDERS:
        known = " and ".join(_FROM_FOLDERS)
        yield f"folder: only {known} know what to do with one"
    if search.implementation is not None and search.strategy not in _WRITING:
        yield f"implementation: only {', '.join(_WRITING)} write sources"
    if (search.strategy == "llm") != (search.agent is not None):
        yield "agent: the strategy llm needs one, and no other strategy knows what to do with it"
    if search.strategy == "llm" and search.rounds < 2:
        yield f"rounds: llm needs at least 2, the first one measures where it starts; got {search.rounds}"
