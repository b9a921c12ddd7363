"""Load what a measuring child hosts. In: a SetUp and its tensors. Out: calls that are bound to them."""

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, assert_never

from pipeline.backends.backend import without_copies
from pipeline.backends.devices.device import Call
from pipeline.backends.registry import backend
from pipeline.measure.hosting import torch_compile
from pipeline.measure.hosting.input_content import Content
from pipeline.measure.hosting.measuring_messages import Candidate, Reference, SetUp


class Hosted(NamedTuple):
    """A loaded callable."""

    bind: Callable[[], Call]
    """The call on the tensors as they lie at that moment."""
    host: Call | None
    """All that the call does but the kernel, where the backend can do that."""
    checked: Callable[[], Call] | None = None
    """As `bind`, with the results in the outputs; None for a reference, which makes its outputs itself."""


def load(set_up: SetUp, content: Content) -> Hosted:
    """Load the callable; raises what its code raises."""
    match set_up.hosted:
        case Candidate() as candidate:
            return _candidate(candidate, content)
        case Reference() as reference:
            return _reference(reference, set_up, content)
        case _:
            assert_never(set_up.hosted)


def _candidate(candidate: Candidate, content: Content) -> Hosted:
    launch = backend(candidate.job.variant.backend).load(
        candidate.job, candidate.compiled, Path(candidate.root), Path(candidate.folder)
    )
    timed = without_copies(launch)
    host = getattr(launch, "host", None)
    return Hosted(
        bind=lambda: functools.partial(timed, dict(content.tensors)),
        host=functools.partial(host, dict(content.tensors)) if host else None,
        checked=lambda: functools.partial(launch, dict(content.tensors)),
    )


def _reference(reference: Reference, set_up: SetUp, content: Content) -> Hosted:
    if reference.set_up is not None:
        _find(reference.set_up)()
    function = _compiled(_find(reference.function), reference)
    if reference.gradient_of is not None:
        from pipeline.backends.package_calls import differentiated

        function = differentiated(function, reference.gradient_of, set_up.problem.names("input"))
    keywords = {**set_up.problem.scalars, **set_up.problem.attributes}
    return Hosted(bind=lambda: functools.partial(function, *content.inputs(), **keywords), host=None)


def _compiled(function: Callable[..., object], reference: Reference) -> Callable[..., object]:
    if reference.compiled == "no":
        return function
    torch_compile.load()
    import torch

    # Compiling again while the clock runs must not go unnoticed.
    torch._dynamo.config.error_on_recompile = True
    if reference.vector_instructions == "trusted":
        torch_compile.trust_vector_instructions()
    torch_compile.choose_header()
    return torch.compile(function, dynamic=False, mode=reference.compiled)


def _find(path: str) -> Callable[..., object]:
    module, _, name = path.partition(":")
    found: Callable[..., object] = getattr(importlib.import_module(module), name)
    return found
