"""Ignores SIGTERM, SIGINT and SIGALRM, and waits on a lock that nobody releases."""

import signal
import threading

import torch.nn as nn

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGXCPU):
    signal.signal(number, signal.SIG_IGN)


class ModelNew(nn.Module):
    def forward(self, x):
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
