"""Importing this module warms what every compile in a forked process needs; it defines nothing.

Work at import, against the house rule, because `Backend.preload` names modules: Triton hashes its own
installation for its cache keys, once per process, which takes 0.3 to 0.8 s, as long as compiling a variant.
And Triton reads some settings when it is imported, which must not be those of the user's shell.
"""

import os
from pathlib import Path

from pipeline.backends.triton.compiler_isolation import own_settings

# Nothing is written at import, so the cache's place does not matter. Who wants the interpreter said so.
with own_settings(Path(os.devnull), keep=("TRITON_INTERPRET",)):
    import triton

    from pipeline.backends.triton.triton_internals import hash_installation, import_compilers

    import_compilers()

    if not triton.knobs.runtime.interpret:
        hash_installation()
