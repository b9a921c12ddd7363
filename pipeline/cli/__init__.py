"""The command line: arguments in, one call into a lower room, exit code out.

`main` is the command `kernelmill`; `commands` has a module for each subcommand or two.

Doors: main
"""
