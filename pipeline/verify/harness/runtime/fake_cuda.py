"""A fake `torch.cuda` for processes without such a device.

In: limits of the target (`sm_count`, `warp_size`, ...). Out: its functions answer, its streams do nothing,
its events measure time on the host. What only a device can do, such as graphs, raises `DeviceUnavailable`.
"""

import contextlib
import functools
import os
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from pipeline.backends.cpp.extension_builds import DeviceUnavailable
from pipeline.verify.torch_internals import answer_about_triton, provide_raw_stream

_NAME = "a device that is not there"
_CAPABILITY = (9, 0)
_MEMORY = 80 << 30  # bytes that it seems to have
_clock = time.perf_counter
_NVIDIA_SMI = """#!/bin/sh
for argument in "$@"; do
    case "$argument" in
    --query-gpu=*) queried=${{argument#--query-gpu=}} ;;
    esac
done
[ -z "$queried" ] && {{ echo "GPU 0: {name}"; exit; }}
answer=
for field in $(echo "$queried" | tr , ' '); do
    case "$field" in
    name | gpu_name) value="{name}" ;;
    memory.used) value=0 ;;
    memory.*) value={memory} ;;
    compute_cap) value={capability} ;;
    driver_version) value=580.0 ;;
    clocks.*mem*) value=2600 ;;
    clocks.*) value=1980 ;;
    count) value=1 ;;
    *) value=0 ;;
    esac
    answer="${{answer:+$answer, }}$value"
done
echo "$answer"
"""


class FakeStream:
    """Work is done when it is given."""

    def __init__(self, _device: Any = None, priority: int = 0, **_keywords: Any) -> None:
        self.device, self.device_index, self.priority = torch.device("cuda", 0), 0, priority
        self.stream_id, self.cuda_stream = 0, 0

    def __enter__(self) -> "FakeStream":
        return self

    def __exit__(self, *_error: object) -> None:
        return None

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait_stream(self, _stream: Any) -> None:
        """Nothing to wait for."""

    def wait_event(self, _event: Any) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """All work is done."""
        return True

    def record_event(self, event: Any = None) -> Any:
        """Mark the present time."""
        event = event or FakeEvent(enable_timing=True)
        event.record(self)
        return event


class FakeEvent:
    """A moment on the host's clock."""

    def __init__(self, *_arguments: Any, **_keywords: Any) -> None:
        self.cuda_event = 0
        self._time = 0.0

    def record(self, _stream: Any = None) -> None:
        """Now."""
        self._time = _clock()

    def elapsed_time(self, other: "FakeEvent") -> float:
        """Milliseconds until another."""
        return (other._time - self._time) * 1e3

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait(self, _stream: Any = None) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """It has happened."""
        return True


def stand_in_for_cuda(limits: dict[str, int]) -> None:
    """Replace functions of `torch.cuda` in this process."""
    stream = FakeStream()
    properties = properties_of(limits)
    answers: dict[str, Any] = {
        "is_available": True, "is_initialized": True, "device_count": 1, "current_device": 0,
        "get_device_name": _NAME, "get_device_capability": _CAPABILITY, "get_arch_list": ["sm_90"],
        "get_device_properties": properties, "mem_get_info": (_MEMORY, _MEMORY), "current_stream": stream,
        "default_stream": stream, "is_bf16_supported": True, "is_tf32_supported": True,
        "is_current_stream_capturing": False, "memory_allocated": 0, "max_memory_allocated": 0,
        "memory_reserved": 0, "max_memory_reserved": 0, "memory_stats": {}, "synchronize": None,
        "empty_cache": None, "set_device": None, "set_stream": None, "reset_peak_memory_stats": None,
        "reset_max_memory_allocated": None, "ipc_collect": None, "init": None, "_lazy_init": None,
        "_check_capability": None, "_sleep": None, "manual_seed": None, "manual_seed_all": None,
    }  # fmt: skip
    for name, answer in answers.items():
        setattr(torch.cuda, name, _answering(name, answer))
    for name in ("device", "device_of", "stream", "_DeviceGuard", "StreamContext"):
        setattr(torch.cuda, name, _Nothing)
    torch.cuda.Stream, torch.cuda.Event = FakeStream, FakeEvent  # type: ignore[assignment, misc]
    for name in ("CUDAGraph", "graph", "make_graphed_callables", "cudart"):
        setattr(torch.cuda, name, _unavailable(f"torch.cuda.{name}"))
    nvtx: Any = torch.cuda.nvtx
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        setattr(nvtx, name, _answering(name, None))
    nvtx.range = _named_range
    answer_about_triton(_answering("has_triton", True))
    _stand_in_for_accelerator(stream)
    _put_nvidia_smi(Path.cwd() / "bin", properties)


def _stand_in_for_accelerator(stream: FakeStream) -> None:
    """The same questions, asked of `torch.accelerator` and by compiled code."""
    answers: dict[str, Any] = {
        "is_available": True, "device_count": 1, "current_accelerator": torch.device("cuda"),
        "current_device_index": 0, "current_device_idx": 0, "current_stream": stream, "set_stream": None,
        "set_device_index": None, "set_device_idx": None, "synchronize": None,
    }  # fmt: skip
    for name, answer in answers.items():
        if hasattr(torch.accelerator, name):
            setattr(torch.accelerator, name, _answering(name, answer))
    if hasattr(torch.accelerator, "device_index"):
        torch.accelerator.device_index = _Nothing  # type: ignore[assignment, misc]
    module_of = torch.get_device_module
    module = functools.lru_cache(lambda device=None: torch.cuda if device is None else module_of(device))
    torch.get_device_module = module
    provide_raw_stream(_answering("current_raw_stream", 0))


def _put_nvidia_smi(folder: Path, properties: Any) -> None:
    """Put a command `nvidia-smi` first on the path: packages run it to learn about the device.

    It lists the device, or answers queries in order: a name, memory in MiB, and numbers for all others.
    """
    folder.mkdir(exist_ok=True)
    command = folder / "nvidia-smi"
    command.write_text(
        _NVIDIA_SMI.format(
            name=_NAME,
            memory=properties.total_memory >> 20,
            capability=f"{properties.major}.{properties.minor}",
        )
    )
    command.chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def properties_of(limits: dict[str, int]) -> Any:
    """The result of `torch.cuda.get_device_properties`."""
    shared = limits.get("shared_memory_per_block", 232448)
    return types.SimpleNamespace(
        name=_NAME,
        major=_CAPABILITY[0],
        minor=_CAPABILITY[1],
        total_memory=_MEMORY,
        multi_processor_count=limits.get("sm_count", 132),
        warp_size=limits.get("warp_size", 32),
        max_threads_per_multi_processor=limits.get("threads_per_sm", 2048),
        max_threads_per_block=limits.get("threads_per_block", 1024),
        regs_per_multiprocessor=limits.get("registers_per_sm", 65536),
        shared_memory_per_block=min(shared, 49152),
        shared_memory_per_block_optin=shared,
        shared_memory_per_multiprocessor=limits.get("shared_memory_per_sm", shared + 1024),
        L2_cache_size=limits.get("l2_bytes", 50 << 20),
        gcnArchName="",
        is_integrated=0,
        is_multi_gpu_board=0,
    )


class _Nothing:
    """A context that changes nothing; also a decorator."""

    def __init__(self, *_arguments: Any, **_keywords: Any) -> None:
        self.idx = 0

    def __enter__(self) -> "_Nothing":
        return self

    def __exit__(self, *_error: object) -> None:
        return None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function


@contextlib.contextmanager
def _named_range(*_arguments: Any, **_keywords: Any) -> Iterator[None]:
    yield


def _answering(name: str, answer: Any) -> Callable[..., Any]:
    def function(*_arguments: Any, **_keywords: Any) -> Any:
        return answer

    function.__name__ = name
    return function


def _unavailable(name: str) -> Callable[..., Any]:
    def function(*_arguments: Any, **_keywords: Any) -> Any:
        raise DeviceUnavailable(f"{name} needs a device")

    function.__name__ = name
    return function
