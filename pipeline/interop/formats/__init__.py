"""Formats of other tuners, read as records: T1, T4 (written, too), caches of Kernel Tuner, output of KTT."""
