"""The known search strategies; adding one is one module and one line here (and its name in `Search`)."""

from collections.abc import Callable, Sequence
from pathlib import Path

from pipeline.records.configuration.search_settings import Ablation, Search, SuccessiveHalving, Transfer
from pipeline.records.errors import ConfigError
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.search.search_trial import Trial
from pipeline.search.source_writer import Writer
from pipeline.search.strategy import Budget, Strategy

NAMES = (
    *("grid", "random", "latin_hypercube", "tpe", "gp", "cma_es", "nsga2"),
    *("evolution", "basin_hopping", "surrogate", "successive_halving", "ablation", "transfer"),
    *("llm", "candidates", "inductor", "mutate"),
)

OF_OPTUNA = ("tpe", "gp", "cma_es", "nsga2")
"""Those that need Optuna."""

Diagnosis = Callable[[Sequence[Trial], Sequence[Path], GenerateSpec], Sequence[Trial]]
"""Trials, the files that they were read from, and the task."""
Remarks = Callable[[Sequence[Trial], Budget], tuple[str, ...]]


def strategy(name: str) -> Strategy:  # noqa: PLR0911, PLR0912  (one line and one case for each)
    """The strategy of that name.

    Raises
    ------
    ConfigError
        Unknown name; the text lists the known ones.
    """
    match name:
        case "grid":
            from pipeline.search.strategies import grid

            return grid.propose
        case "random":
            from pipeline.search.strategies import random

            return random.propose
        case "latin_hypercube":
            from pipeline.search import latin_hypercube

            return latin_hypercube.propose
        case "tpe":
            from pipeline.search import tpe

            return tpe.propose
        case "gp":
            from pipeline.search import gp

            return gp.propose
        case "cma_es":
            from pipeline.search import cma_es

            return cma_es.propose
        case "nsga2":
            from pipeline.search import nsga2

            return nsga2.propose
        case "evolution":
            from pipeline.search.strategies import evolution

            return evolution.propose
        case "basin_hopping":
            from pipeline.search.strategies import basin_hopping

            return basin_hopping.propose
        case "surrogate":
            from pipeline.search.strategies import surrogate

            return surrogate.propose
        case "successive_halving":
            from pipeline.search.strategies import successive_halving

            return successive_halving.propose
        case "ablation":
            from pipeline.search.strategies import ablation

            return ablation.propose
        case "transfer":
            from pipeline.search.strategies import transfer

            return transfer.propose
    raise ConfigError(f"search: got '{name}', expected one of {', '.join(NAMES)}")


def writer(name: str) -> Writer | None:
    """The strategy of that name, where it is one that writes sources."""
    if name == "llm":
        from pipeline.search.strategies import llm

        return llm.propose
    if name == "candidates":
        from pipeline.search.strategies import candidates

        return candidates.propose
    if name == "inductor":
        from pipeline.search.strategies import inductor

        return inductor.propose
    if name == "mutate":
        from pipeline.search.strategies import mutate

        return mutate.propose
    return None


def diagnosis(name: str) -> Diagnosis | None:
    """What tells a strategy that reads it what limits the variants of its history."""
    if name == "llm":
        from pipeline.search.strategies import llm

        return llm.diagnosed
    if name == "mutate":
        from pipeline.search.strategies import mutate

        return mutate.diagnosed
    return None


def module(name: str) -> str:
    """Where the strategy of that name stands."""
    return (writer(name) or strategy(name)).__module__


def members(search: Search) -> tuple[str, ...]:
    """The strategy that a search names, and the one that it has search for it."""
    names: list[str] = [search.strategy]
    if search.strategy == "successive_halving":
        names.append((search.successive_halving or SuccessiveHalving()).sampler)
    if search.strategy == "ablation":
        names.append((search.ablation or Ablation()).search)
    if search.strategy == "transfer":
        names.append((search.transfer or Transfer()).search)
    return tuple(dict.fromkeys(names))


def remarks(name: str) -> Remarks | None:
    """What a strategy has to say about a round beside its points, where it has anything."""
    if name == "nsga2":
        from pipeline.search import nsga2

        return nsga2.remarks
    if name == "successive_halving":
        from pipeline.search.strategies import successive_halving

        return successive_halving.remarks
    if name == "transfer":
        from pipeline.search.strategies import transfer

        return transfer.remarks
    return None
