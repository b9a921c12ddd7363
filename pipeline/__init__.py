"""Kernelmill: declare kernels, workloads, targets and optimizations; get verified, profiled, comparable results."""
