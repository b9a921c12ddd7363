"""Functions that tests run in a fresh child of the server: no thread pool, no library of a candidate."""

import threading
import time

import numpy as np

from pipeline.records.record import Record
from pipeline.sandbox.processes.channel import Channel
from pipeline.verify.harness.in_place.observer import Observer
from pipeline.verify.harness.observers.native_code import mapped


class Answer(Record, frozen=True, kw_only=True):
    """What a function of this module found."""

    items: tuple[str, ...]


def count_threads(channel: Channel) -> None:
    """Threads that are left by a large product of NumPy, and by the candidate's own thread."""
    observer = Observer(lambda: 0, threads=2)
    with observer.call():
        np.ones((700, 700), np.float32) @ np.ones((700, 700), np.float32)
    after_product = observer.noticed(inspect=False, native=True).threads
    with observer.call():
        threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
    own = observer.noticed(inspect=False, native=True).threads
    channel.send(Answer(items=(str(after_product), str(own))))


def own_code(channel: Channel) -> None:
    """Files with machine code that no package has installed."""
    channel.send(Answer(items=mapped()))
