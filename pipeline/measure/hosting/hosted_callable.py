"""Load what a measuring child hosts. In: a SetUp and its tensors. Out: calls that are bound to them."""

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, assert_never

from pipeline.backends.backend import without_copies
from pipeline.backends.devices.device import Call, Device
from pipeline.backends.registry import backend
from pipeline.measure.hosting import torch_compile
from pipeline.measure.hosting.input_content import Content
from pipeline.measure.hosting.measuring_messages import Candidate, CompileMode, HostedModel, Reference, SetUp

if TYPE_CHECKING:
    from pipeline.measure.hosting.model_content import ModelContent


class Hosted(NamedTuple):
    """A loaded callable."""

    bind: Callable[[], Call]
    """The call on the tensors as they lie at that moment."""
    host: Call | None
    """All that the call does but the kernel, where the backend can do that."""
    checked: Callable[[], Call] | None = None
    """As `bind`, with the results in the outputs; None for a reference, which makes its outputs itself."""
    writes: bool = True
    """Whether the timed call leaves its results in the content: a callable of a package does not."""


def content_of(set_up: SetUp, device: Device) -> "Content | ModelContent":
    """What it is called with; of a model raises what its problem's code raises."""
    if isinstance(set_up.hosted, HostedModel):
        from pipeline.measure.hosting.model_content import ModelContent

        return ModelContent(set_up.hosted, device)
    assert set_up.problem is not None
    return Content(set_up.problem, device)


def load(set_up: SetUp, content: "Content | ModelContent", device: Device) -> Hosted:
    """Load the callable; raises what its code raises."""
    match set_up.hosted:
        case Candidate() as candidate:
            assert isinstance(content, Content)
            return _candidate(candidate, content)
        case Reference() as reference:
            assert isinstance(content, Content)
            return _reference(reference, set_up, content)
        case HostedModel() as model:
            assert not isinstance(content, Content)
            return _model(model, content, device)
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
        writes=timed is launch,
    )


def _reference(reference: Reference, set_up: SetUp, content: Content) -> Hosted:
    if reference.set_up is not None:
        _find(reference.set_up)()
    function = _compiled(_find(reference.function), reference.compiled, reference.vector_instructions)
    assert set_up.problem is not None
    if reference.gradient_of is not None:
        from pipeline.backends.package_calls import differentiated

        function = differentiated(function, reference.gradient_of, set_up.problem.names("input"))
    keywords = {**set_up.problem.scalars, **set_up.problem.attributes}
    if reference.prepare is None:
        return Hosted(bind=lambda: functools.partial(function, *content.inputs(), **keywords), host=None)
    prepare = _find(reference.prepare)
    return Hosted(
        bind=lambda: functools.partial(function, *prepare(*content.inputs(), **keywords)), host=None
    )


def _model(hosted: HostedModel, content: "ModelContent", device: Device) -> Hosted:
    from pipeline.measure.hosting.model_hosting import bound, load_model

    loaded = load_model(hosted, content, device)
    loaded = loaded._replace(forward=_compiled(loaded.forward, hosted.compiled, hosted.vector_instructions))
    return Hosted(bind=lambda: bound(loaded, content), host=None)


def _compiled(
    function: Callable[..., object], mode: CompileMode, vector_instructions: Literal["trusted", "tried"]
) -> Callable[..., object]:
    if mode == "no":
        return function
    torch_compile.load()
    import torch

    # Compiling again while the clock runs must not go unnoticed.
    torch._dynamo.config.error_on_recompile = True
    if vector_instructions == "trusted":
        torch_compile.trust_vector_instructions()
    torch_compile.choose_header()
    return torch.compile(function, dynamic=False, mode=mode)


def _find(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found
