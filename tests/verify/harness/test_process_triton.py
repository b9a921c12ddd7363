"""What candidates do with Triton works in a process without a device, unchanged."""

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from pipeline.verify.harness.messages import CallReply, ReadyReply, RefusedReply
from tests.verify.harness.candidate_process import CandidateProcess

SOURCE = Path(__file__).parent / "sources" / "triton_features.py"

NAMES = (
    "exponential",
    "library",
    "library_bits",
    "cumulative",
    "reverse",
    "scanned",
    "sorted",
    "flipped",
    "grouped",
    "half",
    "largest",
    "atomic",
    "histogram",
    "tuned",
    "guessed",
    "scaled",
    "warmed",
    "descriptors",
    "made_descriptor",
    "product",
    "batched",
    "folded",
    "constants",
    "eight_bits",
    "special",
    "looked_at",
    "wrapped",
    "replaced",
    "found_device",
)


def _bits(value: int) -> int:
    """Bits set, zeros before the first and position of the last, of 32."""
    word = value & 0xFFFFFFFF
    return word.bit_count() + 32 - word.bit_length() + (word & -word).bit_length()


@functools.cache
def cases() -> dict[str, tuple[list[torch.Tensor], torch.Tensor]]:
    """Arguments and expected result; not at import: torch's threads would slow what other tests fork."""
    torch.manual_seed(0)
    wide = torch.randn(3, 64)
    square = torch.randn(32, 64)
    half = torch.randn(3, 64).to(torch.bfloat16)
    left, right = torch.randn(40, 24), torch.randn(24, 35)
    batch = torch.randn(2, 16, 16)
    integers = torch.randint(0, 8, (64,), dtype=torch.int32)
    return {
        "exponential": ([wide], wide.exp() * 0.5),
        "library": ([wide], wide.tanh() + wide.erf() + (wide * wide + 1).rsqrt()),
        "library_bits": ([wide], (wide * 1000).int().apply_(_bits) + wide),
        "cumulative": ([wide], wide.cumsum(1)),
        "reverse": ([wide], wide.flip(1).cumsum(1).flip(1)),
        "scanned": ([wide], wide.cummax(1).values),
        "sorted": ([wide], wide.sort(1).values),
        "flipped": ([wide], wide.flip(1)),
        "grouped": ([wide], wide.reshape(3, 32, 2).flip(2).reshape(3, 64).abs()),
        "half": ([half], (half.float() * 1.5).to(torch.bfloat16)),
        "largest": ([wide], wide.max(1).values + wide.argmax(1)),
        "atomic": ([wide], wide.sum(0)),
        "histogram": ([integers], torch.bincount(integers, minlength=8).to(torch.int32)),
        "tuned": ([wide], wide.reshape(-1, 8).sum(0)),
        "guessed": ([wide], wide + 1),
        "scaled": ([wide], wide * 2.5),
        "warmed": ([wide], wide.exp() * 0.5),
        "descriptors": ([square], square * 2),
        "made_descriptor": ([square], square * 2),
        "product": ([left, right], left @ right),
        "batched": ([batch, batch], batch @ batch),
        "folded": ([wide], sum(wide.cummax(1)) + (wide > 1).any(1, keepdim=True)),
        "eight_bits": ([wide], (wide * 100).clamp(-448, 448).to(torch.float8_e4m3fn).float()),
        "special": ([wide], torch.special.i0(wide)),
        "constants": ([wide], wide.floor() + 3.5),
        **dict.fromkeys(("looked_at", "wrapped", "replaced", "found_device"), ([wide], wide.exp() * 0.5)),
    }


@pytest.fixture(scope="module")
def conversation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CandidateProcess]:
    """One process for all features."""
    with CandidateProcess(SOURCE.read_text(), tmp_path_factory.mktemp("features")) as talk:
        assert isinstance(talk.loaded, ReadyReply), talk.loaded
        assert isinstance(talk.construct(), ReadyReply)
        yield talk


def test_launches_are_described_for_the_compiler(conversation: CandidateProcess) -> None:
    """Constants as they are; other numbers by what a compiled kernel is specialized for."""
    done = conversation.call("product", *cases()["product"][0])
    assert isinstance(done, CallReply), done
    (launch,) = done.observed.interpreted
    tensors = {name: {"tensor": "float32"} for name in ("a", "b", "c")}
    sizes = {"M": 40, "N": 35, "K": 24, "BLOCK": 16, "num_warps": 4, "num_stages": 3}
    assert (launch.name, launch.file) == ("_product", "candidate_module.py")
    assert launch.arguments == tensors | sizes
    done = conversation.call("exponential", *cases()["exponential"][0])
    assert isinstance(done, CallReply), done
    (launch,) = done.observed.interpreted
    assert launch.arguments is not None
    assert (launch.arguments["n"], launch.arguments["BLOCK"]) == (16, 64)


@pytest.mark.parametrize("name", ["eight_bits", "special"])
def test_interpreter_itself_is_no_operator_of_the_candidate(
    conversation: CandidateProcess, name: str
) -> None:
    """Neither its conversions nor its device library, whatever they are computed with."""
    done = conversation.call(name, *cases()[name][0])
    assert isinstance(done, CallReply), done
    assert {each.name for each in done.observed.operations} == set()


@pytest.mark.parametrize("name", NAMES)
def test_feature_gives_the_right_values(conversation: CandidateProcess, name: str) -> None:
    """Each runs as written for a device, and is seen as a launch of its own."""
    tensors, expected = cases()[name]
    done = conversation.call(name, *tensors)
    assert isinstance(done, CallReply), done
    torch.testing.assert_close(conversation.value(done.outputs[0]), expected, rtol=1e-5, atol=1e-5)
    assert "triton" in {each.kind for each in done.observed.launches}
    assert not done.observed.tampering
    assert not done.observed.out_of_bounds


def test_autotuner_runs_a_kernel_before_its_result_counts(conversation: CandidateProcess) -> None:
    """One that adds to what it finds is wrong the first time; every configuration is taken for some sizes."""
    found = []
    for size in range(1, 13):
        done = conversation.call("counted", torch.zeros(size))
        assert isinstance(done, CallReply), done
        found.append(conversation.value(done.outputs[0]).tolist())
    assert [times for times, _ in found] == [2.0] + [1.0] * 11
    assert {block for _, block in found} == {32.0, 64.0}


def test_random_numbers_are_in_range(conversation: CandidateProcess) -> None:
    """Triton's generator needs multiplication of 32 bits into 64."""
    done = conversation.call("random", torch.zeros(3, 64))
    assert isinstance(done, CallReply), done
    value = conversation.value(done.outputs[0])
    assert 0 <= float(value.min()) < 0.2
    assert 0.8 < float(value.max()) < 1


@pytest.mark.parametrize(
    ("name", "stage", "error"),
    [
        ("assembly", "call", "DeviceUnavailable"),
        ("on_vendor", "call", "DeviceUnavailable"),
        ("no_pointer", "call", "DeviceUnavailable"),  # the compiler refuses it
        ("mismatched", "call", "InterpreterError"),
        ("assumed", "call", "InterpreterError"),
        ("no_such_function", "build", "InterpreterError"),
    ],
)
def test_what_cannot_run_here_is_told(
    conversation: CandidateProcess, name: str, stage: str, error: str
) -> None:
    """What the interpreter cannot do needs a device; an unknown name does not compile."""
    refused = conversation.call(name, torch.zeros(3, 64))
    assert isinstance(refused, RefusedReply), refused
    assert (refused.stage, refused.error) == (stage, error)
