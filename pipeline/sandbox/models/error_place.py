"""Which line of a user's file raised an exception. In: an exception. Out: the line, in words."""

import linecache
import re
import sysconfig
import traceback

import pipeline

_LONGEST = 100  # characters of a line of source
_PACKAGES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_NOT_THE_USERS = (*_PACKAGES, *pipeline.__path__, "<")
_NAMED = re.compile(r"\bat \d+:\d+:|\.py, line \d|:\d+: error")
"""As messages of Triton's compiler, of Python's parser and of a C++ compiler name their lines."""


def causes(error: BaseException) -> list[BaseException]:
    """An exception, and those that it was raised from, the first one last."""
    found = [error]
    while (cause := found[-1].__cause__ or found[-1].__context__) is not None and cause not in found:
        found.append(cause)
    return found


def raised_at(error: BaseException) -> str:
    """` (line N: source)` of the innermost call in a file that is neither a library's nor ours.

    Empty where there is none, or where the message names a line itself or says nothing.
    """
    if not str(error).strip() or _NAMED.search(str(error)):
        return ""
    for each in reversed(causes(error)):
        frames = [
            (frame.f_code.co_filename, number)
            for frame, number in traceback.walk_tb(each.__traceback__)
            if not frame.f_code.co_filename.startswith(_NOT_THE_USERS)
        ]
        if frames:
            name, number = frames[-1]
            source = linecache.getline(name, number).strip()[:_LONGEST]
            return f" (line {number}: {source})" if source else f" (line {number})"
    return ""
