"""The environment on this machine's processor: what is paid, what is not, and that nothing is left behind."""

import concurrent.futures
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.execution.gym import Action, KernelEnvironment
from pipeline.records.errors import ConfigError
from pipeline.records.outcome import Outcome
from tests.search.agents.server import SOURCES
from tests.stages.test_written import PYTHON, TIMER

NAMES = {"kernel": "softmax", "workload": "awkward", "hardware": "cpu"}
EAGER = ("profile.baselines=[eager]",)
TEMPORARY = "kernelmill-environment-*"


def source(name: str) -> str:
    """One of the sources that the tests of language models have."""
    return (SOURCES / name).read_text()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of its own."""
    return tmp_path_factory.mktemp("gym") / "artifacts"


@pytest.fixture(scope="module")
def environment(store: Path) -> Iterator[KernelEnvironment]:
    """A softmax for the CPU."""
    with KernelEnvironment(**NAMES, overrides=EAGER, store=store) as made:
        yield made


def test_a_reset_shows_the_task(environment: KernelEnvironment) -> None:
    """Statement, reference, signature, device and the source to start from."""
    observation, info = environment.reset(seed=1)
    assert observation.description.startswith("Row-wise softmax")
    assert "torch.softmax" in observation.reference
    assert observation.signature.startswith('extern "C" int softmax(const float* x')
    assert observation.hardware[0].startswith("cpu, architecture ")
    assert observation.source == Path("kernels/softmax/softmax.cpp").read_text()
    assert {axis.name for axis in observation.axes} == set(observation.tunables)
    assert (observation.outcome, info.outcome) == (None, None)


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(400)
def test_a_right_source_is_paid_for_its_speed(environment: KernelEnvironment) -> None:
    """The lower bound of the measured speed-up; the same again is known, tunables go on from there."""
    environment.reset()
    first = environment.step(source("vectors.cpp"))
    assert first.info.outcome is Outcome.PASSED, first.info.reason
    assert first.info.speedup is not None
    assert first.reward == first.info.speedup.low > 0
    assert any(line.startswith("against eager: ") for line in first.observation.feedback)
    again = environment.step(Action(source=source("vectors.cpp")))
    assert (again.reward, again.info.variant) == (first.reward, first.info.variant)
    slow = environment.step(source("plain.cpp"))
    assert 0 < slow.reward < first.reward
    other = environment.step({"UNROLL": 4})
    assert other.observation.source == source("plain.cpp")
    assert other.observation.tunables["UNROLL"] == 4


CHEATS = {
    "knows the pointers": source("cheating.cpp"),
    "patches the clock": source("once.cpp") + PYTHON % f'"{TIMER}"',
    "is wrong where it matters": source("wrong.cpp"),
    "does not compile": source("broken.cpp"),
    "prints a reward": '#include <cstdio>\nextern "C" int softmax() { std::puts("reward 9"); return 0; }\n',
}


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", CHEATS)
def test_cheats_get_nothing(environment: KernelEnvironment, name: str) -> None:
    """The reward is the verdict's, and no source has a say in it."""
    environment.reset()
    done = environment.step(CHEATS[name])
    assert done.reward <= 0
    assert done.info.outcome not in (Outcome.PASSED, None)
    assert done.info.reason
    assert done.info.speedup is None and done.info.seconds is None
    assert done.reward == (-1 if done.info.outcome is Outcome.TAMPERED else 0)


@pytest.mark.slow
def test_tampering_costs(environment: KernelEnvironment) -> None:
    """A source that reaches for the harness gets less than one that is only wrong."""
    environment.reset()
    assert environment.step(CHEATS["patches the clock"]).reward == -1


@pytest.mark.parametrize(
    ("action", "outcome", "words"),
    [
        ({"LANES": 3}, Outcome.PRUNED, "LANES=3"),
        ({"NOTHING": 1}, Outcome.PRUNED, "not a point of the space: see `axes`"),
        ("", Outcome.COMPILE_ERROR, "the text is empty"),
        ("\0", Outcome.COMPILE_ERROR, "null byte"),
        ("x" * (1 << 21), Outcome.COMPILE_ERROR, "expected at most 1,048,576"),
        ('#include "/etc/passwd"', Outcome.COMPILE_ERROR, "only system headers"),
        ("#include </etc/passwd>", Outcome.COMPILE_ERROR, "only system headers"),
    ],
)
def test_what_is_no_variant(
    environment: KernelEnvironment, action: object, outcome: Outcome, words: str
) -> None:
    """The reason is reported, nothing runs, and the next action starts from the same state."""
    before, _ = environment.reset()
    done = environment.step(action)  # type: ignore[arg-type]
    assert (done.reward, done.info.outcome, done.info.stage) == (0, outcome, "generate")
    assert words in (done.info.reason or "")
    assert (done.observation.source, done.observation.tunables) == (before.source, before.tunables)


def test_a_step_ends_in_time(store: Path) -> None:
    """What takes too long is a time-out, which the next attempt need not have."""
    with KernelEnvironment(**NAMES, overrides=EAGER, store=store, seconds_per_step=0.01) as environment:
        environment.reset()
        done = environment.step(source("once.cpp") + "// in no time\n")
        assert (done.reward, done.info.outcome) == (0, Outcome.TIMEOUT)
        assert "longer than 0.01 s" in (done.info.reason or "")
        assert environment.step(source("broken.cpp")).info.outcome is Outcome.TIMEOUT


def test_episodes_end(store: Path) -> None:
    """After so many steps, and then only a reset begins anew."""
    with KernelEnvironment(**NAMES, overrides=EAGER, store=store, steps_at_most=2) as environment:
        environment.reset()
        assert [environment.step("").truncated for _ in range(2)] == [False, True]
        with pytest.raises(
            ConfigError, match=r"the episode ended with step 2: reset\(\) begins the next one"
        ):
            environment.step("")
        environment.reset()
        assert not environment.step("").truncated


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_many_steps_leave_nothing_behind(environment: KernelEnvironment) -> None:
    """Neither files, nor descriptors, nor processes of this one, after several steps."""
    environment.reset()
    environment.step("broken 0")
    before = _belongings(environment)
    outcomes = {environment.step(f"broken {number};").info.outcome for number in range(1, 9)}
    assert outcomes == {Outcome.COMPILE_ERROR}
    assert _belongings(environment) == before


def _belongings(environment: KernelEnvironment) -> tuple[int, int, int]:
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return (
        len(list(environment.scratch.rglob("*"))),
        len(list(Path("/proc/self/fd").iterdir())),
        len(children),
    )


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_several_side_by_side(store: Path) -> None:
    """Each has its own state; both use one store."""

    def one(text: str) -> Outcome | None:
        with KernelEnvironment(**NAMES, overrides=EAGER, store=store) as environment:
            environment.reset()
            return environment.step(text).info.outcome

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(one, [source("wrong.cpp"), source("broken.cpp")]))
    assert found == [Outcome.WRONG_VALUE, Outcome.COMPILE_ERROR]


def test_closed_is_closed(store: Path) -> None:
    """Its folder is gone, and it says so."""
    before = set(Path(tempfile.gettempdir()).glob(TEMPORARY))
    environment = KernelEnvironment(**NAMES, overrides=EAGER, store=store)
    environment.close()
    environment.close()
    assert set(Path(tempfile.gettempdir()).glob(TEMPORARY)) <= before
    with pytest.raises(ConfigError, match="the environment is closed: make another one"):
        environment.step("")
    with pytest.raises(ConfigError, match="the environment is closed"):
        environment.reset()
