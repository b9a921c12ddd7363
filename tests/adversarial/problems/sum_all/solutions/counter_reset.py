import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, part_ptr, count_ptr, out_ptr, n, n_parts, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(part_ptr + pid, tl.sum(x * x, axis=0))
    tl.debug_barrier()
    done = tl.atomic_add(count_ptr, 1)  # acquire and release
    if done == n_parts - 1:
        p = tl.arange(0, PARTS)
        tl.debug_barrier()
        s = tl.sum(tl.load(part_ptr + p, mask=p < n_parts, other=0.0, cache_modifier=".cg"), axis=0)
        tl.store(out_ptr, s)
        tl.store(count_ptr, 0)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = None

    def forward(self, x):
        x = x.contiguous()
        if self.count is None:
            self.count = torch.zeros(1, dtype=torch.int32, device=x.device)
        n = x.numel()
        parts = triton.cdiv(n, 512)
        part = torch.empty(parts, dtype=torch.float32, device=x.device)
        out = torch.empty((), dtype=x.dtype, device=x.device)
        sum_kernel[(parts,)](x, part, self.count, out, n, parts, BLOCK=512, PARTS=triton.next_power_of_2(parts))
        return out
