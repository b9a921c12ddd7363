"""The tests of sweeps need Optuna, which is an extra."""

import pytest

pytest.importorskip("optuna", reason="Optuna is not installed: python -m pip install -e '.[optuna]'")
