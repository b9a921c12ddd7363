"""Settings, trials and specs for the agents' tests."""

from pathlib import Path

import msgspec

from pipeline.records.configuration.hardware import Target
from pipeline.records.configuration.kernel import Cost, Implementation, Tensor, Tunable
from pipeline.records.configuration.optimization import Optimization
from pipeline.records.configuration.search_settings import Search
from pipeline.records.outcome import Outcome
from pipeline.records.planning.problem import Problem
from pipeline.records.planning.specs import Build, GenerateSpec
from pipeline.records.results.profiled import ConfidenceInterval
from pipeline.records.results.variant import Variant
from pipeline.records.search.brief import Brief
from pipeline.records.search.model_attempt import Attempt, Message, ModelRequest, Template
from pipeline.records.search.search_trial import StageOfTrial, Trial
from pipeline.search.agents.agent_settings import Agent
from tests.search.agents.server import SOURCES

NOBODY = "http://127.0.0.1:9/v1"


def agent(base_url: str = NOBODY, **settings: object) -> Agent:
    """Impatient settings."""
    usual: dict[str, object] = {
        "model": "scripted",
        "key_variable": None,
        "tokens_at_most": 1000,
        "seconds_at_most": 5.0,
        "tries": 3,
        "backoff_seconds": 0.0,
        "wait_at_most": 2.0,
        "repairs": 1,
        "requests_at_once": 1,
        "choosing": "best_of_n",
        "width": 2,
        "exploration": 0.3,
        "exemplars": 1,
    }
    return Agent(base_url=base_url, **{**usual, **settings})  # type: ignore[arg-type]


def request(base_url: str = NOBODY, text: str = "Hello", seed: int = 0) -> ModelRequest:
    """A question of the coder."""
    return ModelRequest(
        base_url=base_url,
        model="scripted",
        temperature=None,
        tokens_at_most=1000,
        seed=seed,
        messages=(Message(role="system", content="You write"), Message(role="user", content=text)),
        template=Template(name="coder", version="1", digest="d"),
    )


def variant(source: str, lanes: int = 8) -> Variant:
    """A variant of softmax with a source of that digest."""
    return Variant(
        kernel="softmax",
        implementation="cpp",
        backend="cpp",
        source_digest=source,
        attributes={},
        tunables={"LANES": lanes},
        written=True,
    )


def trial(
    source: str,
    microseconds: float | None = None,
    *,
    number: int = 0,
    outcome: Outcome = Outcome.PASSED,
    stage: StageOfTrial = "profile",
    reason: str | None = None,
) -> Trial:
    """A trial that was measured, or that failed."""
    seconds = None
    if microseconds is not None:
        value = microseconds * 1e-6
        seconds = ConfidenceInterval(value=value, low=0.9 * value, high=1.1 * value, confidence=0.95)
    failed = None if outcome is Outcome.PASSED else reason or "it failed"
    return Trial(
        variant=variant(source), round=number, stage=stage, outcome=outcome, reason=failed, seconds=seconds
    )


def children(**pairs: str | None) -> dict[str, str | None]:
    """Source -> source of the parent, as ids of variants."""
    return {variant(key).id: variant(value).id if value else None for key, value in pairs.items()}


def spec(settings: Agent) -> GenerateSpec:
    """softmax on the CPU."""
    implementation = Implementation(
        backend="cpp",
        source="kernels/softmax/softmax.cpp",
        entry="softmax",
        tunables={"LANES": Tunable(values=(1, 8), default=8)},
        origin="",
        licence="",
    )
    return GenerateSpec(
        kernel="softmax",
        implementations={"cpp": implementation},
        source_digests={"cpp": "declared"},
        problem=Problem(
            kernel="softmax",
            dimensions={"rows": 37, "cols": 1031},
            tensors={
                "x": Tensor(role="input", shape=("rows", "cols"), dtype="float32", layout="row_strided"),
                "y": Tensor(role="output", shape=("rows", "cols"), dtype="float32"),
            },
            scalars={},
            attributes={},
            element="float32",
        ),
        limits={},
        optimization=Optimization(name="", description=""),
        search=Search(
            name="llm",
            description="",
            strategy="llm",
            rounds=3,
            variants_per_round=2,
            settings={"llm": msgspec.to_builtins(settings)},
        ),
        build=Build(code="c", toolchain={}),
        brief=Brief(
            description="Row-wise softmax.",
            category="reduction",
            reference="kernels.softmax.reference:reference",
            reference_digest="r",
            cost=Cost(flops="5 * rows * cols", bytes="2 * rows * cols * itemsize"),
            deterministic=True,
            special_values=True,
            target=Target(kind="cpu", architecture="x86-64-v3", limits={"vector_bits": 256}),
        ),
    )


def text_of(name: str) -> str:
    """A source of the folder `sources`."""
    return Path(SOURCES / name).read_text()


def kinds(attempts: list[Attempt]) -> list[str]:
    """How they ended."""
    return [str(attempt.outcome) for attempt in attempts]
