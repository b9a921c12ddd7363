"""Where the checkout lies that the tests run in."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
