"""Experiments that run on a machine without network: packed here, run there, brought home as one file."""
