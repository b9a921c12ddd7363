"""Before any test module is imported: the server whose children interpret forks while Triton is not here yet.

Triton is either a compiler or an interpreter from its import on, and many test modules import it.
"""

from tests.candidates import conversation  # noqa: F401
