"""What the yaml files in conf/ declare: kernels, workloads, hardware, optimizations, searches, settings."""
