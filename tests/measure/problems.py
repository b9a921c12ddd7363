"""A small problem, settings for quick tests, and members that are started from them."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pipeline.measure.comparison.baselines import BaselineSets, HostedBaseline, MeasurementContext
from pipeline.measure.comparison.round_summary import Measured, Unstable
from pipeline.measure.comparison.rounds import CANDIDATE
from pipeline.measure.hosting.measuring_messages import Reference, SetUp
from pipeline.measure.hosting.process_handle import Member, MemberGone, Place
from pipeline.records.configuration.kernel import Tensor
from pipeline.records.configuration.stage_settings import Profile
from pipeline.records.planning.problem import Problem
from tests.measure.clean import SERVER

TRIES = 6  # of a measurement on a machine that is busy with other things
PROBLEM = Problem(
    kernel="softmax",
    dimensions={"rows": 64, "cols": 256},
    tensors={
        "x": Tensor(role="input", shape=("rows", "cols"), dtype="float32", layout="row_strided"),
        "y": Tensor(role="output", shape=("rows", "cols"), dtype="float32"),
    },
    scalars={},
    attributes={},
    element="float32",
)

SETTINGS = Profile(
    name="test",
    description="",
    baselines=("eager",),
    seconds_per_variant=0.1,
    batches_at_least=6,
    batches_at_most=12,
    batch_seconds=0.001,
    processes_at_least=1,
    processes_at_most=1,
    warmup_seconds=0.001,
    warmup_seconds_at_most=0.01,
    relative_half_width=0.2,
    confidence=0.95,
    time_limit=20.0,
    flush_cache=False,
    mode="offline",
    idle_seconds=0.0,
    cuda_graph="never",
    energy_seconds=None,
    gpu_counters=False,
)


def settings(**changes: object) -> Profile:
    """The settings with some fields changed."""
    return msgspec.structs.replace(SETTINGS, **changes)


def set_up(name: str, *, flush_cache: bool = False) -> SetUp:
    """Hosts one of `tests.measure.callables`."""
    reference = Reference(function=f"tests.measure.callables:{name}")
    return SetUp(hosted=reference, problem=PROBLEM, kind="cpu", flush_cache=flush_cache)


def member(
    name: str, folder: Path, *, called: str = CANDIDATE, seconds: float = 20.0, flush_cache: bool = False
) -> Member:
    """A member that hosts one of `tests.measure.callables`."""
    place = Place(log=folder / f"{called}.txt", environment={}, lifetime=seconds, patience=seconds)
    return Member(called, SERVER, set_up(name, flush_cache=flush_cache), place)


def baselines(name: str, folder: Path, chosen: Profile = SETTINGS) -> BaselineSets:
    """Baselines whose reference is one of `tests.measure.callables`."""
    compiled = {"eager": "no", "compile": "default", "compile_max_autotune": "max-autotune-no-cudagraphs"}
    function = f"tests.measure.callables:{name}"
    context = MeasurementContext(
        set_up=set_up(name, flush_cache=chosen.flush_cache),
        baselines=tuple(
            HostedBaseline(name=each, hosted=Reference(function=function, compiled=compiled[each]))
            for each in chosen.baselines
        ),
        settings=chosen,
        environment={},
        inductor_cache=folder / "inductor",
        logs=folder,
    )
    return BaselineSets(SERVER, context)


def steady(attempt: Callable[[], Measured]) -> Measured:
    """The measurement, taken again while the machine is too busy for one, as its user does."""
    for _ in range(TRIES - 1):
        with contextlib.suppress(Unstable):
            return attempt()
    return attempt()


def accused(attempt: Callable[[], Measured]) -> MemberGone:
    """Why a candidate was given up; measured again while the machine is too busy to tell."""
    for _ in range(TRIES):
        try:
            attempt()
        except MemberGone as gone:
            return gone
        except Unstable:
            continue
    return pytest.fail(f"nobody was accused in {TRIES} measurements")
