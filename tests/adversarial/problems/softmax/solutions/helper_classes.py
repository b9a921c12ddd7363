"""Helper classes, dataclass options, type hints, module-level constants and the empty case."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, x_stride, out_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n_cols
    x = tl.load(x_ptr + row * x_stride + offsets, mask=mask, other=-float("inf"))
    x = x - tl.max(x, axis=0)
    e = tl.exp(x)
    y = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * out_stride + offsets, y, mask=mask)


MAXIMUM_BLOCK: int = 65536


@dataclass(frozen=True)
class Options:
    warps: int = 4
    stages: int = 2


class Launcher:
    def __init__(self, options: Options) -> None:
        self.options = options

    def __call__(self, x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        rows, cols = x.shape
        block = triton.next_power_of_2(cols)
        if block > MAXIMUM_BLOCK:
            raise RuntimeError(f"rows of more than {MAXIMUM_BLOCK} columns are not supported")
        softmax_kernel[(rows,)](
            x,
            out,
            cols,
            x.stride(0),
            out.stride(0),
            block,
            num_warps=self.options.warps,
            num_stages=self.options.stages,
        )
        return out


class ModelNew(nn.Module):
    def __init__(self, options: Options | None = None) -> None:
        super().__init__()
        self.launch = Launcher(options or Options())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.numel() == 0:
            return torch.empty_like(x)
        with torch.cuda.device(x.device) if x.device.type == "cuda" else torch.no_grad():
            return self.launch(x.contiguous(), torch.empty_like(x, memory_format=torch.contiguous_format))
