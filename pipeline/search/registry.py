"""The known search strategies; adding one is one module and one line here (and its name in `Search`)."""

from pipeline.errors import ConfigError
from pipeline.search.strategy import Strategy

NAMES = ("grid", "random")


def strategy(name: str) -> Strategy:
    """The strategy of that name.

    Raises
    ------
    ConfigError
        Unknown name; the text lists the known ones.
    """
    match name:
        case "grid":
            from pipeline.search import grid

            return grid.propose
        case "random":
            from pipeline.search import random

            return random.propose
    raise ConfigError(f"search: got '{name}', expected one of {', '.join(NAMES)}")
