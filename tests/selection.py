"""Which cases of a test `make test` runs, where each goes through the same code; which a run has selected."""

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


def selected(request: pytest.FixtureRequest, parameter: str) -> set[Any]:
    """The values of a parameter that the selected tests of the module have: nothing else needs to be made."""
    calls = [
        item.callspec
        for item in request.session.items
        if item.path == request.path and isinstance(item, pytest.Function) and hasattr(item, "callspec")
    ]
    return {call.params[parameter] for call in calls if parameter in call.params}
