"""Starts children that start children, 200 at most, and waits for none."""

import os
import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(20):
            if os.fork() == 0:
                for _ in range(9):
                    if os.fork() == 0:
                        time.sleep(120)
                        os._exit(0)
                time.sleep(120)
                os._exit(0)
        return torch.zeros_like(x)
