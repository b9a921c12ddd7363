"""fused_linear_jsd"""

import torch
import torch.nn as nn
import torch.nn.functional as F

tokens = 32
hidden = 128
vocab = 1024

class Model(nn.Module):
    def __init__(self, vocab_size, hidden_size):
        super().__init__()
        self.student_weight = nn.Parameter((torch.randn(vocab_size, hidden_size) * 0.1).to(torch.bfloat16))
        self.teacher_weight = nn.Parameter((torch.randn(vocab_size, hidden_size) * 0.1).to(torch.bfloat16))

    def forward(self, student, teacher):
        log_q = torch.log_softmax((student @ self.student_weight.t()).float(), dim=-1)
        log_p = torch.log_softmax((teacher @ self.teacher_weight.t()).float(), dim=-1)
        log_m = torch.log(0.5 * (log_q.exp() + log_p.exp()))
        kl_p = F.kl_div(log_m, log_p, reduction="batchmean", log_target=True)
        kl_q = F.kl_div(log_m, log_q, reduction="batchmean", log_target=True)
        return 0.5 * kl_p + 0.5 * kl_q


def get_inputs():
    return [torch.randn(tokens, hidden, dtype=torch.bfloat16), torch.randn(tokens, hidden, dtype=torch.bfloat16)]


def get_init_inputs():
    return [vocab, hidden]
