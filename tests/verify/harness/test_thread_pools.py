"""Threads of libraries that keep a pool are nobody's left-over."""

import subprocess
import sys

SCRIPT = """
import os, sys, threading, time
import numpy as np
from pipeline.verify.harness.in_place.observer import Observer
if child := os.fork():  # as a candidate's process is: pools of threads do not survive that
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
watch = Observer(lambda: 0, threads=2)
with watch.call():
    np.ones((700, 700), np.float32) @ np.ones((700, 700), np.float32)
print(watch.noticed(inspect=False, native=True).threads)
with watch.call():
    threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
print(watch.noticed(inspect=False, native=True).threads)
"""


def test_products_of_the_interpreter_leave_no_thread() -> None:
    """NumPy's linear algebra starts threads at the first large product; one of the candidate's own counts."""
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["0", "1"]
