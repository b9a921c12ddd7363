"""Formats of problems and candidates: KernelBench folders and flashinfer-bench data sets."""
