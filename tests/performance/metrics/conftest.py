"""The runs of the report's tests."""

from tests.report.conftest import code_root, collected, root, spec  # noqa: F401
