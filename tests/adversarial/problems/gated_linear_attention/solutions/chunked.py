import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gla_kernel(q_ptr, k_ptr, v_ptr, g_ptr, o_ptr, T, D, C: tl.constexpr, BD: tl.constexpr):
    bh = tl.program_id(0)
    d = tl.arange(0, BD)
    i = tl.arange(0, C)
    S = tl.zeros((BD, BD), dtype=tl.float32)
    for t0 in range(0, T, C):
        t = t0 + i
        ptr = bh * T * D + t[:, None] * D + d[None, :]
        mask = (t < T)[:, None] & (d < D)[None, :]
        q = tl.load(q_ptr + ptr, mask=mask, other=0.0)
        k = tl.load(k_ptr + ptr, mask=mask, other=0.0)
        v = tl.load(v_ptr + ptr, mask=mask, other=0.0)
        lg = tl.log(tl.load(g_ptr + bh * T + t, mask=t < T, other=1.0))
        cum = tl.cumsum(lg, axis=0)
        last = tl.sum(lg, axis=0)
        decay = tl.where(i[:, None] >= i[None, :], tl.exp(cum[:, None] - cum[None, :]), 0.0)
        att = tl.dot(q, tl.trans(k), input_precision="ieee") * decay
        o = tl.dot(att, v, input_precision="ieee")
        o += tl.dot(q * tl.exp(cum)[:, None], S, input_precision="ieee")
        tl.store(o_ptr + ptr, o, mask=mask)
        kd = k * tl.exp(last - cum)[:, None]
        S = S * tl.exp(last) + tl.dot(tl.trans(kd), v, input_precision="ieee")


class ModelNew(nn.Module):
    def forward(self, q, k, v, g):
        q, k, v, g = [z.contiguous() for z in (q, k, v, g)]
        BH, T, D = q.shape
        o = torch.empty_like(v)
        gla_kernel[(BH,)](q, k, v, g, o, T, D, C=16, BD=max(16, triton.next_power_of_2(D)))
        return o
