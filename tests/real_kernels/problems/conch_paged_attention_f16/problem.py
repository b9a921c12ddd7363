"""paged_attention"""

import torch
import torch.nn as nn

batch = 2
heads = 4
kv_heads = 2
dim = 64
blocks = 8
block = 16

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, kc, vc, table, lens):
        out = []
        g = q.shape[1] // kc.shape[2]
        for i in range(q.shape[0]):
            n = int(lens[i])
            k = kc[table[i].long()].flatten(0, 1)[:n].float().repeat_interleave(g, 1)
            v = vc[table[i].long()].flatten(0, 1)[:n].float().repeat_interleave(g, 1)
            p = torch.softmax(torch.einsum("hd,nhd->hn", q[i].float(), k) * q.shape[-1] ** -0.5, -1)
            out.append(torch.einsum("hn,nhd->hd", p, v))
        return torch.stack(out).to(q.dtype)


def get_inputs():
    table = torch.randperm(blocks).view(batch, -1).to(torch.int32)
    lens = torch.randint(1, block * table.shape[1] + 1, (batch,), dtype=torch.int32)
    return [torch.randn(batch, heads, dim, dtype=torch.float16), torch.randn(blocks, block, kv_heads, dim, dtype=torch.float16), torch.randn(blocks, block, kv_heads, dim, dtype=torch.float16), table, lens]


def get_init_inputs():
    return []
