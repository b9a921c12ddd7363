"""Derives what a trial needs from the spec of verify, and the key of its verdict.

In: a VerifySpec and a variant. Out: where it runs, shapes, a set of cases, the subject of a trial; the digest
of all that decides the verdict. Everything that judges variants uses these functions, so that a verdict means
the same wherever it is made.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pipeline.backends.backend import CompileJob, Interpreter
from pipeline.backends.cuda.launch_geometry import limits_read
from pipeline.backends.devices.device_registry import HOST, executes_on_host
from pipeline.backends.registry import backend
from pipeline.records.errors import FormulaError
from pipeline.records.formula import ELEMENT_BYTES, evaluate, evaluate_number
from pipeline.records.planning.specs import Build, VerifySpec
from pipeline.records.record import digest
from pipeline.records.results.compiled import Compiled, CompileRecord
from pipeline.records.results.variant import Variant
from pipeline.records.results.verified import WhereRun
from pipeline.verify.harness.planning.shapes import Dimensions, Shape, ShapeBudget, plan

if TYPE_CHECKING:  # these import torch, which must not be used before the fork server is there
    from pipeline.verify.harness.kernel_cases import KernelCase, KernelCaseSet
    from pipeline.verify.harness.kernel_trial import KernelSubject

INTERPRETED_ROWS = 32  # of a row-wise kernel: some milliseconds each
WATCHED_ELEMENTS = 32768  # enough for kernels to share them among threads
WATCHED_EDGES = 2
THREADS = 3  # odd, so that shares are unequal; more than two cores, where idle ones then do not spin


def where_run(spec: VerifySpec) -> WhereRun:
    """Where candidates run: on the target's kind of device, or in the interpreter where there is none."""
    if executes_on_host(spec.target.kind) or spec.device_present:
        return spec.target.kind
    return "interpreter"


def interpreter_of(spec: VerifySpec, name: str) -> Interpreter | None:
    """What runs a backend's variants in place of the device; None if the device is here, or nothing does."""
    return backend(name).interpreter if where_run(spec) == "interpreter" else None


def where_tried(spec: VerifySpec, name: str) -> WhereRun:
    """The same for one backend, each of which has its own interpreter for an absent device."""
    interpreter = interpreter_of(spec, name)
    return where_run(spec) if interpreter is None else interpreter.where


def shapes_of(spec: VerifySpec, variant: Variant) -> tuple[Shape, ...]:
    """The workload's shape and its edges, as far as the variant's constraints allow them."""
    settings = spec.settings
    interpreted = where_run(spec) == "interpreter"
    budget = ShapeBudget(
        elements=settings.interpreter_elements_at_most if interpreted else settings.elements_at_most,
        rows=INTERPRETED_ROWS if interpreted else None,
        edges=settings.edge_shapes,
    )
    return plan(spec.problem, budget, lambda dimensions: _allowed(spec, variant, dimensions))


def case_set_of(spec: VerifySpec, seeds: tuple[int, ...]) -> "KernelCaseSet":
    """Cases with their expected values, shared by all variants of a task.

    Raises
    ------
    ConfigError
        There is no such reference.
    """
    from pipeline.verify.harness.kernel_cases import KernelCaseSet
    from pipeline.verify.oracle.reference import ReferenceOracle, find_function, find_magnitude

    oracle = ReferenceOracle(
        reference=find_function(spec.reference),
        magnitude=find_magnitude(spec.tolerance.magnitude),
        tolerance=spec.tolerance,
        gradient_of=spec.gradient_of,
        mixed_precision=spec.settings.mixed_precision,
        tf32_products=spec.settings.tf32_products,
        terms=lambda problem: evaluate_number(spec.tolerance.reduction, _names(spec, problem.dimensions)),
    )
    promised = {"special": spec.special_values, "integers": spec.linear}
    distributions = tuple(name for name in spec.settings.distributions if promised.get(name, True))
    return KernelCaseSet(
        spec.problem,
        oracle,
        distributions=distributions,
        seeds=seeds,
        per_shape=spec.settings.inputs_per_shape,
        kind=HOST if where_run(spec) == "interpreter" else spec.target.kind,
    )


def cases_of(
    spec: VerifySpec, case_set: "KernelCaseSet", shapes: tuple[Shape, ...]
) -> "tuple[KernelCase, ...]":
    """Which inputs meet which shapes."""
    return case_set.sparse(shapes) if where_run(spec) == "interpreter" else case_set.full(shapes)


def job_of(spec: VerifySpec, variant: Variant) -> CompileJob:
    """What a backend needs to compile or to load a variant."""
    return CompileJob(
        variant=variant,
        implementation=spec.implementations[variant.implementation],
        problem=spec.problem,
        target=spec.target,
    )


def subject_of(
    spec: VerifySpec, job: CompileJob, compiled: Compiled, *, root: Path, folder: Path
) -> "KernelSubject":
    """What is tried; `root` holds the sources, `folder` what compile left."""
    from pipeline.verify.harness.kernel_trial import KernelSubject
    from pipeline.verify.harness.messages import DeclaredKernel

    interpreted = where_run(spec) == "interpreter"
    on_host = not interpreted and executes_on_host(spec.target.kind)
    kernel = DeclaredKernel(
        job=job,
        compiled=compiled,
        root=str(root),
        folder=str(folder),
        device=HOST if interpreted else spec.target.kind,
        threads=1 if interpreted else THREADS,
    )
    return KernelSubject(
        candidate=kernel,
        repeat="first" if interpreted else "every",
        deterministic=spec.deterministic,
        settings=spec.settings,
        watched=_watched_shapes(spec, job.variant) if on_host and spec.settings.thread_counts else (),
        accesses_seen=interpreter_of(spec, job.variant.backend) is not None,
    )


def _watched_shapes(spec: VerifySpec, variant: Variant) -> tuple[Shape, ...]:
    """Small ones for the calls in which every access is looked at."""
    budget = ShapeBudget(elements=WATCHED_ELEMENTS, rows=None, edges=WATCHED_EDGES)
    return plan(spec.problem, budget, lambda dimensions: _allowed(spec, variant, dimensions))


def can_run(spec: VerifySpec, name: str) -> bool:
    """Whether a backend's variants can be tried here at all."""
    return where_run(spec) != "interpreter" or interpreter_of(spec, name) is not None


def _allowed(spec: VerifySpec, variant: Variant, dimensions: Dimensions) -> bool:
    """Whether the variant's constraints hold on other dimensions."""
    names = {**spec.target.limits, **_names(spec, dimensions), **variant.tunables}
    rules = [constraint.rule for constraint in spec.implementations[variant.implementation].constraints]
    try:
        return all(bool(evaluate(rule, names)) for rule in rules)
    except FormulaError:
        if 0 in dimensions.values():  # a rule that divides by a size says nothing about an empty tensor
            return False
        raise


def _names(spec: VerifySpec, dimensions: Dimensions) -> dict[str, bool | int | float | str]:
    return {**spec.problem.attributes, **dimensions, "itemsize": ELEMENT_BYTES[spec.problem.element]}


def verdict_digest(spec: VerifySpec, compiled: CompileRecord, shapes: Sequence[Shape]) -> str:
    """What the verdict depends on, and nothing else.

    The target is in it through the artifact; the interpreter runs the source, so that targets share its
    verdict.
    """
    variant, where = compiled.variant, where_run(spec)
    result = compiled.result
    artifact = result.artifact_digest if isinstance(result, Compiled) and where != "interpreter" else None
    return digest(
        {
            "variant": variant.id,
            "entry": spec.implementations[variant.implementation].called,
            "artifact": artifact,
            "problem": spec.problem,
            "shapes": shapes,
            "reference": [spec.reference, spec.reference_digest, spec.gradient_of],
            "tolerance": spec.tolerance,
            "claims": [spec.deterministic, spec.special_values, spec.linear],
            "settings": msgspec.structs.replace(spec.settings, name="", description="", editing_only=False),
            "where": where,
            "limits": _limits(spec, variant),
            "build": _build(spec, variant.backend),
        }
    )


def _limits(spec: VerifySpec, variant: Variant) -> dict[str, int]:
    """The target's, as far as the geometry of a launch reads them: stand-ins start those threads, too."""
    launch = spec.implementations[variant.implementation].launch
    return {} if launch is None else limits_read(launch, spec.target.limits)


def _build(spec: VerifySpec, name: str) -> Build:
    """What the verdict depends on besides its inputs; targets that are interpreted share it."""
    build = spec.builds[name]
    interpreter = interpreter_of(spec, name)
    if interpreter is None:
        return build
    kept = {tool: build.toolchain[tool] for tool in interpreter.toolchain if tool in build.toolchain}
    return Build(code=build.code, toolchain=kept)
