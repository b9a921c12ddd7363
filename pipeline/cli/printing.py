"""What a command says: lines in, standard output out."""

import sys
from collections.abc import Iterable


def print_lines(lines: Iterable[str]) -> None:
    """One after the other as they come; a reader that has seen enough (`… | head`) is no error."""
    try:
        for line in lines:
            print(line, flush=True)
    except BrokenPipeError:
        sys.stderr.close()  # Python would tell of it once more when it ends
