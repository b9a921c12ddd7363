"""The command line: arguments in, one call into a lower room, exit code out.

`main` is the command `kernelmill`; `commands` has one module per subcommand.

Doors: main
"""
