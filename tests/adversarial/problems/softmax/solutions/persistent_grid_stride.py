"""A few persistent programs stride over the rows."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def persistent_kernel(x_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n_cols
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * n_cols + offsets, mask=mask, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * n_cols + offsets, e / tl.sum(e, axis=0), mask=mask)


def number_of_programs(rows):
    if torch.cuda.is_available():
        return min(rows, torch.cuda.get_device_properties(0).multi_processor_count)
    return min(rows, 7)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        grid = lambda meta: (number_of_programs(rows),)
        persistent_kernel[grid](
            x, out, rows, cols, BLOCK=triton.next_power_of_2(cols), num_warps=4, num_stages=2
        )
        return out
