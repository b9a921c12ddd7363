"""Exit codes of every command."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a shell gets; `kernelmill --help` and the reference print this table."""

    OK = 0
    FAILED = 1
    USAGE = 2
    INCOMPLETE = 3
    INTERRUPTED = 130
    TERMINATED = 143


MEANING = {
    ExitCode.OK: "what was asked for is done; some variants or candidates may have failed: that is data",
    ExitCode.FAILED: "a job failed, no variant passed, nothing was judged, or a file, tool or server failed",
    ExitCode.USAGE: "the command line or a configuration is wrong; nothing was run",
    ExitCode.INCOMPLETE: "bundle run: results were written, but some tasks did not finish",
    ExitCode.INTERRUPTED: "stopped with Ctrl-C; run, sweep, judge and verify keep results and continue",
    ExitCode.TERMINATED: "stopped with SIGTERM (kill, timeout), as with Ctrl-C",
}
