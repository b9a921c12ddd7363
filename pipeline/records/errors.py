"""The one error tree: a class for each thing that a user can fix.

KernelmillError
├── AgentError         a language model cannot be asked: names the endpoint, the cause and what is kept
├── ConfigError        a yaml or an override is wrong: names the file, the key and the known names
├── FormatError        a file of another tool is not of its kind: names the file, the place, got and expected
├── FormulaError       an expression in a yaml cannot be evaluated: names the expression and its known names
├── BundleError        a bundle or a job is damaged, foreign or in conflict: names the file and what to do
├── StoreError         a file under artifacts/ cannot be read or written: names the path and the cause
├── SweepError         a sweep cannot go on: names what failed, and the limit
├── ToolchainError     a compiler or a tool that is needed is missing: names it and how to get it
├── TrackingError      MLflow cannot be reached or refuses: names the address and the cause
└── WorkerError        a worker process could not be started or went away: names its log

Expected failures of kernels are not errors: they are `pipeline.records.outcome.Outcome` values.
"""

import errno
from collections.abc import Iterable

REMEDIES = {
    errno.ENOSPC: "free space and run again",
    errno.EDQUOT: "free space of your quota and run again",
    errno.EACCES: "get the right to write there and run again",
    errno.EPERM: "get the right to write there and run again",
    errno.EROFS: "make the file system writable and run again",
    errno.EMFILE: "raise the limit (ulimit -n) and run again",
    errno.ENFILE: "close what holds files open on this machine and run again",
    errno.EAGAIN: "raise the limit of processes (ulimit -u) and run again",
    errno.ENOMEM: "free memory and run again",
    errno.EIO: "the disk is failing: see dmesg",
}
"""What a user does about trouble of the machine; an OSError with another number is a bug of ours."""


class KernelmillError(Exception):
    """Base of every error that a user can act on; its text is one line, whatever it quotes."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class AgentError(KernelmillError):
    """The endpoint of a language model is not there, or does not let us in."""


class ConfigError(KernelmillError):
    """A configuration is wrong."""


class FormatError(KernelmillError):
    """A file of another tool is not what it should be."""


class FormulaError(KernelmillError):
    """An expression of a yaml cannot be evaluated."""


class BundleError(KernelmillError):
    """A bundle cannot be taken, or a job cannot be packed or run."""


class StoreError(KernelmillError):
    """A file of the artifact store cannot be read or written."""


class SweepError(KernelmillError):
    """Too many jobs of a sweep failed, or all of them."""


class ToolchainError(KernelmillError):
    """A compiler or a tool is missing or broken."""


class TrackingError(KernelmillError):
    """MLflow cannot be reached or refuses what it is given."""


class WorkerError(KernelmillError):
    """A worker process could not be started or went away."""


LISTED = 24
"""Of known names, if there are many and a folder has them all."""


def one_line(text: str) -> str:
    r"""The text without what ends a line or steers a terminal: a space, or `\x1b` as written here."""
    if text.isprintable():
        return text
    joined = " ".join(line if number == 0 else line.strip() for number, line in enumerate(text.splitlines()))
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in joined)


def hint(name: str, known: Iterable[str], *, folder: str | None = None) -> str:
    """What follows an unknown name: `; did you mean 'a'? (known: a, b)`.

    Of many names the similar one alone, or the first of them; `folder`: where all are.
    """
    names = list(known)
    similar = suggestion(name, names)
    if len(names) <= LISTED or folder is None:
        return f"{similar} (known: {', '.join(names) or 'none'})"
    return similar or f" (known: {', '.join(names[:LISTED])}, … and {len(names) - LISTED} more in {folder})"


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'a'?`, or nothing if no known name is similar."""
    import difflib  # only messages need it

    similar = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean '{similar[0]}'?" if similar else ""


def installation(extra: str) -> str:
    """How to get an optional part, with the versions that everything else was pinned with."""
    return f"python -m pip install --constraint requirements.lock --editable '.[{extra}]'"


def explained(error: OSError) -> str:
    """What happened, and what to do: `No space left on device; free space and run again`."""
    cause = error.strerror or str(error)
    remedy = REMEDIES.get(error.errno or 0)
    return f"{cause}; {remedy}" if remedy else cause
