"""Functions that tests run in a fresh child of the server: no thread pool, no library of a candidate."""

import os
import threading
import time
from pathlib import Path

import numpy as np
import torch

from pipeline.records.record import Record
from pipeline.sandbox.processes.channel import Channel
from pipeline.verify.harness.messages import Observed
from pipeline.verify.harness.observer import Observer
from pipeline.verify.harness.observers.native_code import mapped


class Answer(Record, frozen=True, kw_only=True):
    """What a function of this module found."""

    items: tuple[str, ...]


class ObservedCalls(Record, frozen=True, kw_only=True):
    """What an observer noticed during some calls."""

    calls: tuple[Observed, ...]


def observe_calls(channel: Channel) -> None:
    """Operators and settings of PyTorch, then NumPy on an input."""
    counts = iter((4, 7, 7, 7, 7, 7))
    observer = Observer(
        Path("candidate.py"), triton="absent", backends=(), count_launches=lambda: next(counts)
    )
    observer.settle_pools(1)
    given = torch.ones(4)

    def operators() -> None:
        x = torch.randn(4, 4).t().contiguous()
        torch.softmax(x + 1, -1).add_(1).to(torch.float64)

    def setting() -> None:
        torch.set_default_dtype(torch.float64)

    def host() -> None:
        torch.set_default_dtype(torch.float32)
        np.exp(given.numpy())
        given.tolist()

    calls = []
    for action, inspect in ((operators, True), (setting, True), (host, False)):
        observer.begin([given], seed=0, suppress=False)
        with observer.watching():
            action()
        calls.append(observer.end([], inspect=inspect))
    channel.send(ObservedCalls(calls=tuple(calls)))


def count_threads(channel: Channel) -> None:
    """Threads that are left by a large product of NumPy, and by the candidate's own thread."""
    observer = Observer(Path("candidate.py"), triton="interpreted", backends=())
    observer.settle_pools(2)
    observer.begin([], seed=0, suppress=False)
    with observer.watching():
        np.ones((700, 700), np.float32) @ np.ones((700, 700), np.float32)
    after_product = observer.end([], inspect=False).threads
    observer.begin([], seed=0, suppress=False)
    with observer.watching():
        threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
    own = observer.end([], inspect=False).threads
    channel.send(Answer(items=(str(after_product), str(own))))


def count_threads_of_a_driver(channel: Channel) -> None:
    """How many threads a call starts that calls a driver, and how many of them are counted."""
    observer = Observer(Path("candidate.py"), triton="absent", backends=(), has_driver=True)
    observer.settle_pools(1)
    before = len(os.listdir("/proc/self/task"))  # noqa: PTH208
    observer.begin([], seed=0, suppress=False)
    with observer.watching():
        np.ones((700, 700), np.float32) @ np.ones((700, 700), np.float32)
    counted = observer.end([], inspect=False).threads
    started = len(os.listdir("/proc/self/task")) - before  # noqa: PTH208
    observer.begin([], seed=0, suppress=False)
    with observer.watching():
        threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
    own = observer.end([], inspect=False).threads
    channel.send(Answer(items=(str(started > 0), str(counted), str(own))))


def own_code(channel: Channel) -> None:
    """Files with machine code that no package has installed."""
    channel.send(Answer(items=mapped()))
