"""One module per command of `kernelmill`, called like the command, with a click command called `command`."""
