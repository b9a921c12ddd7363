"""The search strategies: each module of `strategies`, and the entry points of other packages."""

import functools
import importlib
import pkgutil

from pipeline.records.configuration.search_settings import Search
from pipeline.records.entry_points import entry_points
from pipeline.records.errors import ConfigError
from pipeline.search import strategies
from pipeline.search.strategy import Fidelity, Propose, SearchInputs, Strategy

GROUP = "kernelmill.strategies"
"""Entry points of other packages: name -> `module:STRATEGY`."""


@functools.cache
def own_names() -> tuple[str, ...]:
    """Modules of `pipeline.search.strategies`, without importing them."""
    return tuple(sorted(each.name for each in pkgutil.iter_modules(strategies.__path__)))


def strategy_names() -> tuple[str, ...]:
    """Of all strategies, our own first."""
    return (*own_names(), *(name for name in entry_points(GROUP) if name not in own_names()))


def module(name: str) -> str:
    """Where the strategy of that name is defined, without importing it."""
    if name in own_names():
        return f"pipeline.search.strategies.{name}"
    others = entry_points(GROUP)
    if name in others:
        return others[name].module
    raise ConfigError(f"strategy: expected one of {', '.join(strategy_names())}, got '{name}'")


def strategy(name: str) -> Strategy:
    """The strategy of that name; imports its module.

    Raises
    ------
    ConfigError
        Unknown name; the text lists the known ones. Or an entry point that leads nowhere.
    """
    where = module(name)
    attribute = "STRATEGY" if name in own_names() else entry_points(GROUP)[name].attr
    try:
        found = getattr(importlib.import_module(where), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"strategy {name}: {where}:{attribute} cannot be loaded: {error}") from error
    if not isinstance(found, Strategy):
        raise ConfigError(
            f"strategy {name}: {where}:{attribute}: expected a Strategy, got {type(found).__name__}"
        )
    return found


def proposer(name: str) -> Propose:
    """How a strategy that tunes proposes points.

    Raises
    ------
    ConfigError
        As `strategy`, or it writes sources instead.
    """
    propose = strategy(name).propose
    if propose is None:
        raise ConfigError(f"strategy {name}: it writes sources, and cannot propose points")
    return propose


def members(search: Search) -> tuple[str, ...]:
    """The strategy of a search, and the one that it wraps."""
    wraps = strategy(search.strategy).wraps
    found = [search.strategy] if wraps is None else [search.strategy, wraps(search)]
    return tuple(dict.fromkeys(found))


def search_inputs(search: Search) -> SearchInputs:
    """What the search reads besides the space."""
    inputs = strategy(search.strategy).inputs
    return SearchInputs() if inputs is None else inputs(search)


def fidelities(search: Search) -> tuple[Fidelity, ...]:
    """How fully each round measures; empty if every round measures fully."""
    fidelity = strategy(search.strategy).fidelity
    return () if fidelity is None else tuple(fidelity(search, number) for number in range(search.rounds))


def shapes(search: Search, workload: dict[str, int]) -> tuple[dict[str, int], ...]:
    """Round -> the dimensions that it measures on; empty if every round has those of the workload."""
    levels = fidelities(search)
    return tuple(each.dimensions(workload) for each in levels) if any(each.shrink for each in levels) else ()
