"""What torch.compile generates for the reference, as a variant. In: the task. Out: a source, or why not.

The declared default comes first: it shows what Inductor's code gains or loses. For the CPU it is C++, for a
CUDA target Triton code, whether or not the device is here.
"""

import subprocess
import sys
from collections.abc import Sequence
from typing import TypeVar

from pipeline.records.configuration.hardware import Target
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.errors import ToolchainError
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.record import Record, from_json, to_json
from pipeline.records.search.search_trial import Trial
from pipeline.records.search.written_source import Author, Proposal, Unfit, WrittenSource
from pipeline.search.spaces.search_space import Space
from pipeline.search.strategies.candidates import default_points
from pipeline.search.strategy import Budget, SearchInputs, Strategy, Workshop
from pipeline.search.torch_inductor import gpu_capture
from pipeline.search.torch_inductor.cpp_source import CannotWrap, Macros, wrap
from pipeline.search.torch_inductor.cpu_capture import Capture, CpuCaptureRequest
from pipeline.search.torch_inductor.triton_source import wrap_triton

BACKENDS: dict[str, str] = {"cpu": "cpp", "cuda": "triton"}
"""Kind of device -> backend whose source the generated one replaces."""
CAPTURE, CAPTURE_GPU = (
    "pipeline.search.torch_inductor.cpu_capture",
    "pipeline.search.torch_inductor.gpu_capture",
)
Answer = TypeVar("Answer", bound=Record)


class InductorSettings(Record, frozen=True, kw_only=True):
    """Settings of the strategy `inductor`."""

    implementation: str | None = None
    """Implementation whose source it replaces; null: the first one of the backend."""


SECONDS = 300.0  # to compile one reference: 20 to 30 on two busy cores


def propose(
    space: Space,
    history: Sequence[Trial],  # noqa: ARG001
    budget: Budget,
    workshop: Workshop,
) -> list[Proposal | Unfit]:
    """The defaults, and Inductor's source in the place of an implementation's; all in the first round.

    Raises
    ------
    ToolchainError
        The process that compiles the reference ended without an answer.
    """
    if budget.round > 0:
        return []
    spec = workshop.spec
    chosen = budget.settings(InductorSettings, "inductor").implementation
    points = default_points(space)
    backend = BACKENDS.get(spec.target.kind) if spec.target is not None else None
    wanted = [
        name
        for name, each in spec.implementations.items()
        if each.backend == backend and each.call is None and name in points and chosen in (None, name)
    ]
    if not wanted:
        return [_unfit("", _without_a_place(spec, backend))]
    name = wanted[0]
    return [Proposal(implementation=name, tunables=points[name]), _generated(name, points, workshop)]


def _generated(name: str, points: dict[str, dict[str, TunableValue]], workshop: Workshop) -> Proposal | Unfit:
    spec = workshop.spec
    if spec.reference is None or spec.target is None:
        return _unfit("", "the reference of a backward kernel is differentiated: it is not compiled", name)
    if spec.target.kind != "cpu":
        return _for_gpu(name, points, spec, spec.target)
    found = _captured(CAPTURE, CpuCaptureRequest(reference=spec.reference, problem=spec.problem), Capture)
    version = found.version or "unknown"
    if found.problem is not None:
        return _unfit(version, found.problem, name)
    if len(found.code) != 1:
        return _unfit(version, f"torch.compile splits the reference into {len(found.code)} graphs", name)
    macros = Macros(capability=found.capability, version=version)
    try:
        text = wrap(found.code[0], spec.problem, spec.implementations[name].entry, macros)
    except CannotWrap as error:
        return _unfit(version, str(error), name)
    source = WrittenSource(text=text, author=_author(version))
    return Proposal(implementation=name, tunables=points[name], source=source)


def _for_gpu(
    name: str, points: dict[str, dict[str, TunableValue]], spec: GenerateSpec, target: Target
) -> Proposal | Unfit:
    """The same, in Triton."""
    assert spec.reference is not None
    request = gpu_capture.GpuCaptureRequest(reference=spec.reference, problem=spec.problem, target=target)
    found = _captured(CAPTURE_GPU, request, gpu_capture.Captured)
    version = found.version or "unknown"
    if found.problem is not None:
        return _unfit(version, found.problem, name)
    if len(found.modules) != 1:
        return _unfit(version, f"torch.compile splits the reference into {len(found.modules)} graphs", name)
    try:
        text = wrap_triton(found, spec.problem, spec.implementations[name].entry)
    except CannotWrap as error:
        return _unfit(version, str(error), name)
    return Proposal(
        implementation=name, tunables=points[name], source=WrittenSource(text=text, author=_author(version))
    )


def _without_a_place(spec: GenerateSpec, backend: str | None) -> str:
    if spec.target is None:
        return "the reference of a backward kernel is differentiated: it is not compiled"
    if backend is None:
        return f"its code for {spec.target.kind} is not taken: expected one of {', '.join(BACKENDS)}"
    return f"its code takes the place of a {backend} source: this task has none"


def _captured(module: str, request: Record, kind: type[Answer]) -> Answer:
    """In a process of its own: Inductor starts threads, keeps caches, and takes seconds to import."""
    command = [sys.executable, "-m", module]
    ended = subprocess.run(command, input=to_json(request), capture_output=True, check=False, timeout=SECONDS)
    if ended.returncode != 0:
        last = ended.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ToolchainError(f"torch.compile of the reference: {' '.join(last) or 'it ended silently'}")
    return from_json(ended.stdout, kind)


def _author(version: str) -> Author:
    details = {"sizes": "symbolic", "licence": "generated by PyTorch (BSD-3-Clause)"}
    return Author(writer="inductor", name=f"torch {version}", details=details)


def _unfit(version: str, reason: str, name: str | None = None) -> Unfit:
    failure = Failure(outcome=Outcome.NOT_WRITTEN, reason=reason)
    return Unfit(implementation=name, author=_author(version or "not asked"), failure=failure)


STRATEGY = Strategy(
    description="The code that torch.compile generates for the reference.",
    write=propose,
    settings=InductorSettings,
    inputs=lambda _: SearchInputs(reference=True),
)
