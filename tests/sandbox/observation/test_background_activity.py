"""What a candidate leaves running is counted."""

import subprocess
import threading
import time

from pipeline.sandbox.observation import background_activity


def test_threads_and_processes() -> None:
    """What was left running is counted, also where Python does not list it; what ended is not."""
    import _thread

    before = background_activity.running()
    stop = threading.Event()
    _thread.start_new_thread(stop.wait, ())
    process = subprocess.Popen(["sleep", "60"])
    deadline = time.monotonic() + 5
    while background_activity.left_running(before).threads < 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    left = background_activity.left_running(before)
    stop.set()
    process.kill()
    process.wait()
    assert (left.threads, left.children) == (1, 1)
    assert len(left.native) >= 1
    while background_activity.left_running(before).threads and time.monotonic() < deadline:
        time.sleep(0.01)
    assert background_activity.left_running(before).threads == 0


def test_threads_that_have_ended() -> None:
    """They are not left running, once the system has let them go."""
    before = background_activity.running()
    threads = [threading.Thread(target=int) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()  # ends before the thread of the system does
    deadline = time.monotonic() + 5
    while background_activity.left_running(before).native and time.monotonic() < deadline:
        time.sleep(0.01)
    left = background_activity.left_running(before)
    assert (left.threads, left.native) == (0, frozenset())
