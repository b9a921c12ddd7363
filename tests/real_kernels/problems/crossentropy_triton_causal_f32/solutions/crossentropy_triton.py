import torch
import torch.nn as nn
from crossentropy_triton import TritonCausalLMLoss


class ModelNew(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.loss = TritonCausalLMLoss(vocab_size)

    # The package writes gradients into the memory of the logits.
    def forward(self, logits, labels):
        return self.loss(logits.clone(), labels)
