"""`kernelmill mcp` over standard input and output, with the client of the package `mcp`."""

import functools
import sys
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import pytest

from pipeline.store.attempt_history import read_attempts
from tests.cli.test_judge import CTYPES, DOUBLE, TORCH, TRITON, problems
from tests.paths import ROOT

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="needs the extra mcp")

WRONG = TRITON.replace(" * weight, mask", ", mask")
STILL_WRONG = TRITON.replace(" * weight, mask", " * (weight + 0.001), mask")
Call = Callable[..., Awaitable[Any]]


def served(folder: Path, *options: str, work: Callable[[Call], Awaitable[None]]) -> None:
    """Start a server, connect, and do the work with a function that calls its tools."""
    from mcp import Client, StdioServerParameters, stdio_client

    arguments = ["-m", "pipeline", "mcp", str(folder / "problems"), "--root", str(folder / "store"), *options]
    server = StdioServerParameters(command=sys.executable, args=arguments, cwd=ROOT)

    async def connected() -> None:
        async with Client(stdio_client(server)) as client:

            async def call(tool: str, **given: object) -> Any:
                answer = await client.call_tool(tool, given)
                return answer.content[0].text if answer.is_error else answer.structured_content

            await work(call)

    anyio.run(connected)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for problems and a store."""
    problems(tmp_path / "problems")
    return tmp_path


@pytest.mark.slow
def test_three_calls_repair_a_wrong_kernel(folder: Path) -> None:
    """Wrong, still wrong, right: each refusal says where, got, expected; the next server knows all of it."""

    async def repair(call: Call) -> None:
        listed = (await call("list_problems"))["problems"]
        assert [each["name"] for each in listed] == ["double", "no_model", "softmax"]
        problem = await call("read_problem", problem="softmax")
        assert "torch.softmax" in problem["source"]
        assert "columns = 2 * 40" in problem["sizes"]
        outcomes = []
        for source in (WRONG, STILL_WRONG, TRITON):
            answer = await call("judge", problem="softmax", source=source)
            outcomes.append(answer["outcome"])
            if answer["outcome"] == "passed":
                break
            assert all(word in answer["reason"] for word in ("output 0[", "got", "expected", "±"))
            meaning = await call("explain_outcome", outcome=answer["outcome"])
            assert meaning == answer["meaning"]
        assert outcomes == ["wrong_value", "wrong_value", "passed"]

    async def look_back(call: Call) -> None:
        history = await call("history", problem="softmax")
        assert [each["outcome"] for each in history["attempts"]] == ["wrong_value", "wrong_value", "passed"]
        assert history["attempts"][-1]["source"] == TRITON
        again = await call("judge", problem="softmax", source=TRITON)
        assert (again["known"], again["judged_seconds"]) == (True, 0)
        assert again["usage"]["calls"] == 4
        assert "stop" in await call("judge", problem="softmax", source=WRONG)

    served(folder, work=repair)
    served(folder, "--calls", "4", work=look_back)
    attempts = read_attempts(folder / "store", "mcp")
    assert [(each.order, each.number) for each in attempts] == [(1, 1), (2, 2), (3, 3), (4, 4)]
    assert len({each.conversation for each in attempts}) == 2


@pytest.mark.slow
def test_a_hostile_client_holds_up_nobody(folder: Path) -> None:
    """While its candidate never ends, lists are answered, another client is judged, and it pays."""
    endless = "while True: pass"

    async def both(call: Call) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(functools.partial(call, "judge", problem="double", source=endless))
            await anyio.sleep(0.2)
            with anyio.fail_after(2):
                await call("list_problems")
            await anyio.to_thread.run_sync(judged_elsewhere)
            assert read_attempts(folder / "store", "hostile") == ()

    def judged_elsewhere() -> None:
        served(folder, "--client", "other", work=other)

    async def other(call: Call) -> None:
        assert (await call("judge", problem="double", source="import torch"))["outcome"] == "compile_error"

    served(folder, "--client", "hostile", "--seconds-per-call", "20", work=both)
    (attempt,) = read_attempts(folder / "store", "hostile")
    assert attempt.verdict.outcome in ("not_judged", "timeout")
    assert attempt.seconds > 1


def test_problems_and_errors(folder: Path) -> None:
    """The server reads a problem again when its files change.

    An unknown name suggests the nearest one; a problem that cannot be judged says why.
    """

    async def ask(call: Call) -> None:
        (folder / "problems" / "double" / "problem.py").write_text(DOUBLE.replace("n = 3000", "n = 300"))
        assert "n = 300" in (await call("read_problem", problem="double"))["sizes"]
        assert "did you mean 'softmax'?" in await call("read_problem", problem="softmx")
        assert "no class Model" in await call("read_problem", problem="no_model")
        assert "did you mean 'wrong_value'?" in await call("explain_outcome", outcome="wrong_values")
        assert "no attempt 7 (known: none)" in await call("profile", problem="softmax", attempt=7)

    served(folder, work=ask)


@pytest.mark.slow
def test_what_passes_is_measured(folder: Path) -> None:
    """Against the model and its compiled form, once; what is refused has no time."""

    async def measured(call: Call) -> None:
        first = await call("measure", problem="double", source=CTYPES)
        speedups = first["measured"]["speedups"]
        assert {each["baseline"] for each in speedups} == {"eager", "compile"}
        again = await call("measure", problem="double", source=CTYPES)
        assert (again["measured"], again["judged_seconds"]) == (first["measured"], 0)
        assert (await call("profile", problem="double", attempt=1))["measured"] == first["measured"]
        refused = await call("measure", problem="double", source=TORCH)
        assert (refused["outcome"], refused["measured"]) == ("tampered", None)

    served(folder, work=measured)
