"""What every stage's command line does the same way: errors in one line, and one line of result."""

import collections
import sys
import tempfile
from collections.abc import Callable, Sequence

from pipeline.records.environment import forget_compiler_settings
from pipeline.records.errors import REMEDIES, KernelmillError, explained
from pipeline.records.outcome import Failure


def run(work: Callable[[], None]) -> int:
    """Do the work; what a user can fix becomes one line and exit code 1, a bug keeps its traceback.

    It does not see what the user's shell says to compilers: Triton decides at its import, for all children of
    this process, whether it compiles or interprets.
    """
    forget_compiler_settings()
    try:
        work()
    except KernelmillError as error:
        return _failed(str(error))
    except OSError as error:
        if error.errno not in REMEDIES:
            raise
        return _failed(f"{error.filename or tempfile.gettempdir()}: {explained(error)}")
    return 0


def _failed(reason: str) -> int:
    print(f"error: {reason}", file=sys.stderr)
    return 1


def report(
    name: str, results: Sequence[object], *, cached: int, seconds: float, noun: str = "variant"
) -> None:
    """Print how many variants ended how, for example `verify softmax: 24 variants: 24 passed`."""
    counts = collections.Counter(
        result.outcome.value if isinstance(result, Failure) else "passed" for result in results
    )
    ended = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    plural = "" if len(results) == 1 else "s"
    known = f" ({cached} cached)" if cached else ""
    line = f"{name}: {len(results)} {noun}{plural}: {ended or 'nothing to do'}{known} · {seconds:.1f} s"
    print(line, file=sys.stderr)
