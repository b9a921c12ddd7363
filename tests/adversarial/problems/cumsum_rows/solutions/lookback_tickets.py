import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def lookback_kernel(x_ptr, out_ptr, carry_ptr, flag_ptr, ticket_ptr, n_cols, n_blocks, BLOCK: tl.constexpr):
    # programs take their work in the order in which they start, so the one
    # that we wait for is always already running
    t = tl.atomic_add(ticket_ptr, 1)
    row = t // n_blocks
    blk = t % n_blocks
    offs = blk * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_cols
    x = tl.load(x_ptr + row * n_cols + offs, mask=mask, other=0.0)
    total = tl.sum(x, axis=0)
    carry = 0.0
    if blk > 0:
        while tl.atomic_add(flag_ptr + t - 1, 0) == 0:
            pass
        carry = tl.load(carry_ptr + t - 1, volatile=True)
    tl.store(carry_ptr + t, carry + total)
    tl.debug_barrier()
    tl.atomic_xchg(flag_ptr + t, 1)
    tl.store(out_ptr + row * n_cols + offs, tl.cumsum(x, 0) + carry, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        BLOCK = 256
        nb = triton.cdiv(cols, BLOCK)
        out = torch.empty_like(x)
        carry = torch.empty(rows * nb, device=x.device)
        flags = torch.zeros(rows * nb, dtype=torch.int32, device=x.device)
        ticket = torch.zeros(1, dtype=torch.int32, device=x.device)
        lookback_kernel[(rows * nb,)](x, out, carry, flags, ticket, cols, nb, BLOCK=BLOCK)
        return out
