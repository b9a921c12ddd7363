"""Before any test module is imported: the server whose children interpret forks while Triton is not here yet.

Triton is either a compiler or an interpreter from its import on, and many test modules import it.
The user's own cache is left alone.
"""

import atexit
import os
import shutil
import tempfile

os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="kernelmill-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

from tests.candidates import conversation  # noqa: E402, F401
