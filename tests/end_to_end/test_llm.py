"""A language model's search from the command line to the tables, against a scripted endpoint."""

import csv
import os
import shutil
import socket
from pathlib import Path

import pytest

from tests.end_to_end.checkout import Checkout
from tests.search.agents.server import ADVICE, SOURCES, Reply, Script, code, failing, serving

CANARY = "sk-canary-4711"
STEADY_GAIN = (
    3.0  # the vectorised source is some 20 times as fast as the plain one; a busy machine may hide much
)


def free_port() -> int:
    """A port that nobody uses now, and that stays: answers are kept under the endpoint's address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def lines(folder: Path, table: str) -> list[dict[str, str]]:
    """A table that aggregate wrote last."""
    path = max(folder.glob(f"artifacts/aggregate/*/{table}.csv"), key=lambda each: each.stat().st_mtime)
    with path.open() as stream:
        return list(csv.DictReader(stream))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_from_a_plain_source_to_a_faster_one(checkout: Checkout) -> None:
    """The endpoint dies and comes back; what is wrong, broken, cheats or pries comes to nothing; the right
    one wins; nothing is asked twice; the key is nowhere.
    """
    pytest.importorskip("openai", reason="needs the extra llm: pip install 'kernelmill[llm]'")
    shutil.copy2(SOURCES / "plain.cpp", checkout.folder / "plain.cpp")
    checkout.environment["OPENAI_API_KEY"] = CANARY
    own = [checkout.environment["PYTHONPATH"], *filter(None, [os.environ.get("PYTHONPATH")])]
    checkout.environment["PYTHONPATH"] = os.pathsep.join(own)  # the extra may lie there
    port = free_port()
    command = (
        *("run", "kernel=softmax", "workload=awkward", "hardware=cpu", "optimization=defaults", "search=llm"),
        *(
            "verify=fast",
            "profile=quick",
            "tracking=disabled",
            "search.rounds=3",
            "search.variants_per_round=3",
        ),
        *(f"search.llm.base_url=http://127.0.0.1:{port}/v1", "search.llm.model=scripted"),
        *(
            "search.llm.start=plain.cpp",
            "search.llm.requests_at_once=1",
            "search.llm.backoff_seconds=0.1",
        ),
    )
    judge = [Reply(text="CHANGE: compute each exponential once."), Reply(text=ADVICE)]

    dying = Script(coder=[code("wrong.cpp"), failing(401, f"Incorrect API key: {CANARY}")], judge=judge)
    with serving(dying, port):
        said = checkout.module("pipeline", *command, check=False, seconds=400)
    assert "error: " in said
    assert "HTTP 401: Incorrect API key: [key] (after 1 try); 2 answers of this round kept: run again" in said
    assert "Traceback" not in said

    alive = Script(
        coder=[
            *(code("once.cpp"), Reply(text="Use vectors."), code("broken.cpp"), code("cheating.cpp")),
            *(failing(429, "busy", Retry_After="0"), code("prying.cpp"), code("vectors.cpp")),
        ],
        judge=judge[1:],
    )
    with serving(alive, port):
        checkout.module("pipeline", *command, seconds=400)
    asked = len(alive.asked)
    assert asked == 8  # seven for sources, one of the judge: the two answers of before were kept

    found = {row["variant"]: row for row in lines(checkout.folder, "variants")}
    outcomes = sorted(row["outcome"] for row in found.values())
    assert outcomes[:2] == ["compile_error", "crashed"]
    assert set(outcomes[2:]) == {"passed", "unwritten_output", "wrong_value"}
    (winner,) = lines(checkout.folder, "winners")
    best, start = found[winner["variant"]], next(row for row in found.values() if row["round"] == "0")
    assert (best["outcome"], best["round"]) == ("passed", "2")
    assert float(start["median_seconds"]) / float(best["median_seconds"]) > STEADY_GAIN
    assert int(best["agent_prompt_tokens"]) > 1000
    assert best["agent_cost"] == ""
    attempts = lines(checkout.folder, "attempts")
    assert [row["outcome"] for row in attempts] == ["used"] * 6
    assert [row["requests"] for row in attempts] == ["2", "1", "2", "2", "1", "1"]

    again = checkout.module("pipeline", *command)
    assert len(alive.asked) == asked
    assert "agents softmax" not in again
    keys = [
        path
        for path in checkout.folder.rglob("*")
        if path.is_file() and not path.is_symlink() and CANARY.encode() in path.read_bytes()
    ]
    assert keys == []
