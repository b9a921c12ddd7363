"""Messages to a child process: plain values only, so that a hostile child cannot run code in its judge."""

import os
import select
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from pipeline.records.record import from_message

MESSAGE_LIMIT = 256 << 20  # bytes; a larger message closes the channel


class Channel:
    """Sends and receives plain values (numbers, strings, bytes, lists, dicts, records) as MessagePack."""

    def __init__(self, descriptor: int) -> None:
        self._connection = Connection(descriptor)
        # Made once: who waits for an answer must be asleep before the other side has begun to compute.
        self._arrivals = select.poll()
        self._arrivals.register(descriptor, select.POLLIN)

    def send(self, value: object) -> None:
        """Send one value; OSError where the other side is gone."""
        self._connection.send_bytes(msgspec.msgpack.encode(value))

    def receive(self, kind: Any = Any) -> Any:
        """Wait for one value of a kind (a record type, or any plain value); EOFError at the end."""
        return from_message(self._connection.recv_bytes(MESSAGE_LIMIT), kind)

    def poll(self, seconds: float) -> bool:
        """Whether a value or the end arrives within so many seconds."""
        return bool(self._arrivals.poll(1000 * seconds))

    def inherited(self) -> int:
        """The descriptor, which a program that takes the place of this process inherits."""
        descriptor = self._connection.fileno()
        os.set_inheritable(descriptor, True)
        return descriptor

    def close(self) -> None:
        """End the conversation."""
        self._connection.close()
