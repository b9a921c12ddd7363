"""What torch.compile generates for the reference, as a variant: C++ for the CPU, Triton for a CUDA target.

The declared default comes first, so that the gain of Inductor's code is visible. The GPU need not be present.
"""

import subprocess
import sys
from collections.abc import Sequence

from pipeline.backends.devices.device_registry import executes_on_host
from pipeline.backends.language import CPP, TRITON, Language
from pipeline.backends.registry import backend
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.errors import ToolchainError
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.record import Record, from_json, to_json
from pipeline.records.search.search_trial import Trial
from pipeline.records.search.written_source import Author, Proposal, Unfit, WrittenSource
from pipeline.search.spaces.search_space import Space
from pipeline.search.strategies.candidates import default_points
from pipeline.search.strategy import Budget, SearchInputs, Strategy, WriterContext
from pipeline.search.torch_inductor.capture import CaptureRequest
from pipeline.search.torch_inductor.cpp_source import wrap_cpp
from pipeline.search.torch_inductor.generated_code import CannotWrap, GeneratedCode
from pipeline.search.torch_inductor.inductor_internals import require_supported
from pipeline.search.torch_inductor.triton_source import wrap_triton

LANGUAGES: dict[str, Language] = {"cpu": CPP, "cuda": TRITON}
"""Kind of device -> what Inductor generates for it; the result replaces a source in that language."""
CAPTURE = "pipeline.search.torch_inductor.capture"
NO_REFERENCE = "the reference of a backward kernel is differentiated: it is not compiled"


class InductorSettings(Record, frozen=True, kw_only=True):
    """Settings of the strategy `inductor`."""

    implementation: str | None = None
    """Implementation whose source it replaces; null: the first one of the backend."""


SECONDS = 300.0  # to compile one reference: 20 to 30 on two busy cores


def propose(
    space: Space,
    history: Sequence[Trial],  # noqa: ARG001
    budget: Budget,
    writer: WriterContext,
) -> list[Proposal | Unfit]:
    """The default, and Inductor's source in place of the implementation's; both in the first round.

    Raises
    ------
    ToolchainError
        This version of torch is not supported, or the process that compiles the reference crashed.
    """
    if budget.round > 0:
        return []
    spec = writer.spec
    chosen = budget.settings(InductorSettings, "inductor").implementation
    points = default_points(space)
    language = LANGUAGES.get(spec.target.kind) if spec.target is not None else None
    wanted = [
        name
        for name, each in spec.implementations.items()
        if each.call is None
        and backend(each.backend).language == language
        and name in points
        and chosen in (None, name)
    ]
    if not wanted:
        return [_unfit("", _without_a_place(spec, language))]
    name = wanted[0]
    return [Proposal(implementation=name, tunables=points[name]), _generated(name, points, writer)]


def _generated(
    name: str, points: dict[str, dict[str, TunableValue]], writer: WriterContext
) -> Proposal | Unfit:
    spec = writer.spec
    if spec.reference is None or spec.target is None:
        return _unfit("", NO_REFERENCE, name)
    found = _captured(CaptureRequest(reference=spec.reference, problem=spec.problem, target=spec.target))
    version = found.version or "unknown"
    if found.problem is not None:
        return _unfit(version, found.problem, name)
    if len(found.modules) != 1:
        return _unfit(version, f"torch.compile splits the reference into {len(found.modules)} graphs", name)
    wrap = wrap_cpp if executes_on_host(spec.target.kind) else wrap_triton
    try:
        text = wrap(found, spec.problem, spec.implementations[name].entry)
    except CannotWrap as error:
        return _unfit(version, str(error), name)
    source = WrittenSource(text=text, author=_author(version))
    return Proposal(implementation=name, tunables=points[name], source=source)


def _without_a_place(spec: GenerateSpec, language: Language | None) -> str:
    if spec.target is None:
        return NO_REFERENCE
    if language is None:
        return f"its code for {spec.target.kind} is not taken: expected one of {', '.join(LANGUAGES)}"
    return f"its code takes the place of a {language.name} source: this task has none"


def _captured(request: CaptureRequest) -> GeneratedCode:
    """In a process of its own: Inductor starts threads, keeps caches, and takes seconds to import."""
    if not executes_on_host(request.target.kind):
        require_supported()
    command = [sys.executable, "-m", CAPTURE]
    ended = subprocess.run(command, input=to_json(request), capture_output=True, check=False, timeout=SECONDS)
    if ended.returncode != 0:
        last = ended.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ToolchainError(f"torch.compile of the reference: {' '.join(last) or 'it ended silently'}")
    return from_json(ended.stdout, GeneratedCode)


def _author(version: str) -> Author:
    details = {"sizes": "symbolic", "licence": "generated by PyTorch (BSD-3-Clause)"}
    return Author(writer="inductor", name=f"torch {version}", details=details)


def _unfit(version: str, reason: str, name: str | None = None) -> Unfit:
    failure = Failure(outcome=Outcome.NOT_WRITTEN, reason=reason)
    return Unfit(implementation=name, author=_author(version or "unknown"), failure=failure)


STRATEGY = Strategy(
    description="The code that torch.compile generates for the reference.",
    write=propose,
    settings=InductorSettings,
    inputs=lambda _: SearchInputs(reference=True),
)
