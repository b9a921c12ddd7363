"""NVIDIA GPUs, through torch, Triton, NVML and Nsight Compute."""
