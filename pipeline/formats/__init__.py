"""Formats: files of other tuners (Kernel Tuner's T1, T4 and cache files) read as records, and T4 written."""
