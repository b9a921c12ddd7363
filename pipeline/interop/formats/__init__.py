"""Formats: files of other tuners (T1, T4, caches of Kernel Tuner, KTT) read as records, and T4 written."""
