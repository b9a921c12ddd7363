"""What candidates do with Triton works in a process without a device, unchanged."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from pipeline.candidates.messages import Done, Ready, Refused
from tests.candidates.conversation import Conversation

SOURCE = Path(__file__).parent / "sources" / "triton_features.py"

torch.manual_seed(0)
WIDE = torch.randn(3, 64)
SQUARE = torch.randn(32, 64)
HALF = torch.randn(3, 64).to(torch.bfloat16)
LEFT, RIGHT = torch.randn(40, 24), torch.randn(24, 35)
BATCH = torch.randn(2, 16, 16)
INTEGERS = torch.randint(0, 8, (64,), dtype=torch.int32)

CASES = {
    "exponential": ([WIDE], WIDE.exp() * 0.5),
    "library": ([WIDE], WIDE.tanh() + WIDE.erf() + (WIDE * WIDE + 1).rsqrt()),
    "cumulative": ([WIDE], WIDE.cumsum(1)),
    "reverse": ([WIDE], WIDE.flip(1).cumsum(1).flip(1)),
    "scanned": ([WIDE], WIDE.cummax(1).values),
    "sorted": ([WIDE], WIDE.sort(1).values),
    "flipped": ([WIDE], WIDE.flip(1)),
    "grouped": ([WIDE], WIDE.reshape(3, 32, 2).flip(2).reshape(3, 64).abs()),
    "half": ([HALF], (HALF.float() * 1.5).to(torch.bfloat16)),
    "largest": ([WIDE], WIDE.max(1).values + WIDE.argmax(1)),
    "atomic": ([WIDE], WIDE.sum(0)),
    "histogram": ([INTEGERS], torch.bincount(INTEGERS, minlength=8).to(torch.int32)),
    "tuned": ([WIDE], WIDE.reshape(-1, 8).sum(0)),
    "guessed": ([WIDE], WIDE + 1),
    "scaled": ([WIDE], WIDE * 2.5),
    "warmed": ([WIDE], WIDE.exp() * 0.5),
    "descriptors": ([SQUARE], SQUARE * 2),
    "made_descriptor": ([SQUARE], SQUARE * 2),
    "product": ([LEFT, RIGHT], LEFT @ RIGHT),
    "batched": ([BATCH, BATCH], BATCH @ BATCH),
}


@pytest.fixture(scope="module")
def conversation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conversation]:
    """One process for all features."""
    with Conversation(SOURCE.read_text(), tmp_path_factory.mktemp("features")) as talk:
        assert isinstance(talk.loaded, Ready), talk.loaded
        assert isinstance(talk.construct(), Ready)
        yield talk


@pytest.mark.parametrize("name", CASES)
def test_feature_gives_the_right_values(conversation: Conversation, name: str) -> None:
    """Each runs as written for a device, and is seen as a launch of its own."""
    tensors, expected = CASES[name]
    done = conversation.call(name, *tensors)
    assert isinstance(done, Done), done
    torch.testing.assert_close(conversation.value(done.outputs[0]), expected, rtol=1e-5, atol=1e-5)
    assert done.observed.launches[0].kind == "triton"
    assert not done.observed.tampering
    assert not done.observed.out_of_bounds


def test_random_numbers_are_in_range(conversation: Conversation) -> None:
    """Triton's generator needs multiplication of 32 bits into 64."""
    done = conversation.call("random", WIDE)
    assert isinstance(done, Done), done
    value = conversation.value(done.outputs[0])
    assert 0 <= float(value.min()) < 0.2
    assert 0.8 < float(value.max()) < 1


@pytest.mark.parametrize(
    ("name", "stage", "error"),
    [("assembly", "call", "DeviceUnavailable"), ("no_such_function", "build", "InterpreterError")],
)
def test_what_cannot_run_here_is_told(conversation: Conversation, name: str, stage: str, error: str) -> None:
    """Assembly needs a device; an unknown name does not compile."""
    refused = conversation.call(name, WIDE)
    assert isinstance(refused, Refused), refused
    assert (refused.stage, refused.error) == (stage, error)
