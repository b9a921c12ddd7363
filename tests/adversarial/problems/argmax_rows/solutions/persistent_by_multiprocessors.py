import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def am(x, out, rows, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    for r in range(tl.program_id(0), rows, tl.num_programs(0)):
        v = tl.load(x + r * n + o, mask=o < n, other=-float("inf"))
        tl.store(out + r, tl.argmax(v, 0).to(tl.int64))

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
        sms = torch.cuda.get_device_properties(x.device).multi_processor_count
        am[(min(sms, x.shape[0]),)](x, out, x.shape[0], x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
