"""Checks of the path to a device, each in a process of its own: a machine in, a table and a file out.

`device_checking` lists the checks, runs them one after the other, and prints the table; `check_report` holds
the records of the file. A check is a function of a `checked_*` module: `CheckSetting` in, `CheckAnswer` out.
"""
