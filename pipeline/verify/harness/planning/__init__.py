"""Plans the cases of a problem or a kernel: conditions within its contract, sizes, weights and inputs."""
