"""Which line of a user's file raised an exception. In: an exception. Out: the line, in words."""

import linecache
import re
import sysconfig
import traceback

import pipeline

_LONGEST = 100  # characters of a line of source
_STANDARD = tuple({f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib")})
_NOT_THE_USERS = (*_STANDARD, *(f"{path}/" for path in pipeline.__path__), "<")
_PACKAGES = ("/site-packages/", "/dist-packages/")
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

    That of a cause where the exception itself has no such call; empty where there is none, or where the
    message names a line itself or says nothing.
    """
    if not str(error).strip() or _NAMED.search(str(error)):
        return ""
    for each in causes(error):
        frames = [
            (frame.f_code.co_filename, number)
            for frame, number in traceback.walk_tb(each.__traceback__)
            if _is_the_users(frame.f_code.co_filename)
        ]
        if frames:
            name, number = frames[-1]
            source = linecache.getline(name, number).partition(" #")[0].strip()[:_LONGEST]
            return f" (line {number}: {source})" if source else f" (line {number})"
    return ""


def _is_the_users(name: str) -> bool:
    return not name.startswith(_NOT_THE_USERS) and not any(each in name for each in _PACKAGES)
