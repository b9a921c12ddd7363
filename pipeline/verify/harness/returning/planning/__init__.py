"""Plans the cases of a problem: conditions that its contract allows, sizes, weights and inputs."""
