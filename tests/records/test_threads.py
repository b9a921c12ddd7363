"""Records are read by several threads: compile's and verify's workers each wait for their own child."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading
from pipeline.records.record import Record, from_json, from_message
sys.setswitchinterval(1e-6)
for _ in range(150):
    class Inner(Record, frozen=True, kw_only=True):
        outcome: str | None = None
    class Outer(Record, frozen=True, kw_only=True):
        entry: str | None = None
        first: Inner | None = None
        second: Inner | None = None
    barrier = threading.Barrier(8)
    def read():
        barrier.wait()
        assert from_json(b'{"entry":"x","first":{"outcome":"y"}}', Outer).first.outcome == "y"
        assert from_message(b"\\x81\\xa5entry\\xa1x", Outer).entry == "x"
    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


@pytest.mark.slow
def test_threads_that_read_a_kind_for_the_first_time() -> None:
    """msgspec alone ends the process with a segmentation fault here: therefore in one of its own."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
