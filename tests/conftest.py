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
import zlib

import pytest

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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """$KERNELMILL_TEST_SHARE, `1/3`: of the slow cases of each parametrized test one third, and one at least.

    Which ones depends on their names alone, so that the thirds together are all of them. `.ci/run` takes the
    one that the commit says, `make test-all` takes them all.
    """
    wanted, _, parts = os.environ.get("KERNELMILL_TEST_SHARE", "").partition("/")
    if not parts:
        return
    others = {item for item in items if _is_case(item) and _part(item, int(parts)) != int(wanted)}
    tried = {_function(item) for item in items if item not in others}
    for item in items:
        if item in others and _function(item) not in tried:
            tried.add(_function(item))
            others.remove(item)
    config.hook.pytest_deselected(items=list(others))
    items[:] = [item for item in items if item not in others]


def _is_case(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None and hasattr(item, "callspec")


def _part(item: pytest.Item, parts: int) -> int:
    return zlib.crc32(item.nodeid.encode()) % parts


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


# What a script starts in the background ignores Ctrl-C, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
