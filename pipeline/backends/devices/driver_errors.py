"""What a GPU driver's refusal means, as torch, Triton, cuda-core and the driver itself word it.

Source: CUDA Driver API, `CUresult`, https://docs.nvidia.com/cuda/cuda-driver-api/.
"""

import re
from typing import Literal

Meaning = Literal["unavailable", "out of memory", "illegal address"]
_MEANINGS: dict[Meaning, str] = {
    "illegal address": r"ILLEGAL_ADDRESS|IllegalAddress|illegal memory access",
    "out of memory": r"(CUDA|HIP) out of memory|ERROR_OUT_OF_MEMORY|error: out of memory",
    "unavailable": (
        r"ERROR_(OPERATING_SYSTEM|NO_DEVICE|DEVICE_UNAVAILABLE|SYSTEM_\w+|COMPAT_NOT_SUPPORTED_ON_DEVICE)"
        r"|OS call failed|MPS_\w+|MPS client|system not yet initialized|no CUDA-capable device"
        r"|driver version is insufficient|busy or unavailable|no NVIDIA driver|unsupported driver"
    ),
}


def meaning(text: str) -> Meaning | None:
    """Of a message; None if it says nothing of the kind."""
    return next((name for name, pattern in _MEANINGS.items() if re.search(pattern, text)), None)
