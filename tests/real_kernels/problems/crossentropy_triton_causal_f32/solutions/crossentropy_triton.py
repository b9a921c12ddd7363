import torch
import torch.nn as nn
from crossentropy_triton import TritonCausalLMLoss


class ModelNew(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.loss = TritonCausalLMLoss(vocab_size)

    def forward(self, logits, labels):
        return self.loss(logits, labels)
