"""The state of the device and of the machine while something is measured."""
