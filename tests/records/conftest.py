"""The made-up run of the report's tests."""

from tests.report.conftest import collected, root, spec  # noqa: F401
