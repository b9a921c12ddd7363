"""Clocks: one module per kind of device."""
