"""Configuration: options composed with Hydra, and checked."""
