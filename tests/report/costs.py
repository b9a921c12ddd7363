"""A result with all that can be measured beside its time, and one of a device that tells nothing."""

import msgspec

from pipeline.records.results.collection import Result
from pipeline.records.results.profiled import (
    Conditions,
    Counters,
    Energy,
    KernelCounters,
    Memory,
    Peak,
    Profiled,
    Unmeasured,
)

MB = 1 << 20


def with_costs(result: Result) -> Result:
    """As a GPU tells them."""
    return _changed(
        result,
        energy=Energy(joules=0.25, watts=500.0, seconds=0.6, calls=1200, updates=12, source="nvml"),
        memory=Memory(
            first=Peak(device_bytes=48 * MB, outside_bytes=2 * MB, host_bytes=5 * MB),
            steady=Peak(device_bytes=16 * MB, outside_bytes=0, host_bytes=0),
            formula_bytes=1e6,
        ),
        counters=Counters(
            tool="ncu",
            values={"dram__bytes_read.sum": 96.0},
            kernels=(
                KernelCounters(kernel="first", values={"dram__bytes_read.sum": 64.0}),
                KernelCounters(kernel="second", values={"dram__bytes_read.sum": 32.0}),
            ),
            absent={"sm__inst_executed_pipe_tensor.sum": "not on this device"},
        ),
        conditions=Conditions(
            clock_mhz_low=1755.0,
            clock_mhz_high=1980.0,
            temperature_celsius=61.0,
            watts=480.0,
            throttled=("software power cap", "sync boost"),
            samples=9,
        ),
    )


def without_costs(result: Result) -> Result:
    """Absent, with the reasons."""
    return _changed(
        result,
        unmeasured=(
            Unmeasured(quantity="energy", reason="no RAPL"),
            Unmeasured(quantity="counters", reason="not allowed"),
        ),
    )


def _changed(result: Result, **fields: object) -> Result:
    assert result.profile is not None
    assert isinstance(result.profile.result, Profiled)
    found = msgspec.structs.replace(result.profile.result, **fields)
    return msgspec.structs.replace(result, profile=msgspec.structs.replace(result.profile, result=found))
