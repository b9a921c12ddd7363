"""Writes the files of a new kernel from a PyTorch function."""
