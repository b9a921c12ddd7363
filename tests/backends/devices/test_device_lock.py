"""One measurement at a time on a device."""

import threading
import time

from pipeline.backends.devices.device_lock import device_lock


def test_one_at_a_time() -> None:
    """Who comes second waits; another device is free."""
    order = []

    def second() -> None:
        with device_lock("test device"):
            order.append("second")

    with device_lock("test device"):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.2)
        with device_lock("another test device"):
            order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
