"""Kernelmill: declare kernels, workloads and targets; get verified, profiled, reproducible results."""
