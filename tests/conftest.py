"""Before any test module is imported: a cache of compiled things for this session.

The user's own cache is left alone: a session has one of its own, which its workers share (pytest-xdist),
and the sessions of one `make test` where $KERNELMILL_TEST_CACHE names a folder. What is in it is keyed by all
that it depends on, so that the machine's ceilings are measured once, in the part that runs alone.
"""

import atexit
import gc
import os
import shutil
import signal
import tempfile

if os.environ.get("KERNELMILL_TEST_CACHE"):
    os.environ["XDG_CACHE_HOME"] = os.environ["KERNELMILL_TEST_CACHE"]
elif "PYTEST_XDIST_WORKER" not in os.environ:  # a worker has that of the process which started it
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="kernelmill-tests-")
    atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

# Thousands of tests and all that they import stay until the end: to look through them again and again takes a
# quarter of the time of collection.
gc.disable()


def pytest_collection_finish() -> None:
    """Tests collect garbage, but none of what was there before them."""
    gc.freeze()
    gc.enable()


# What a script starts in the background ignores Ctrl-C, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
