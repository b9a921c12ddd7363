"""Which cases of a test `make test` runs, where each of them goes through the same code."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def slow_unless(kept: Callable[[Any], bool], cases: Iterable[Any]) -> list[Any]:
    """The cases for `parametrize`: those that are not kept are left to `make test-all`."""
    return [
        case
        if kept(case) is True  # `__eq__` of other types answers NotImplemented, which is no answer
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
        for case in cases
    ]
