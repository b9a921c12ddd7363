"""The page of the ablation: what the pipeline found, and the pairs side by side."""

from pipeline.records.results.profiled import ConfidenceInterval
from tests.benchmarks.ablation import overrides, page

BEST = {
    "best_variant": "b0",
    "best_configuration": "LANES=16 MICRO_ROWS=14",
    "best_seconds": 0.002,
    "workload": "bert_base",
}
ROWS = (
    {
        **BEST,
        "technique": "register_blocking",
        "changed": "MICRO_ROWS=14 -> 1",
        "along": None,
        "variant": "v1",
        "seconds": 0.009,
        "time_ratio": 4.5,
        "time_ratio_low": 4.4,
        "time_ratio_high": 4.6,
        "verdict": "pays",
    },
    {
        **BEST,
        "technique": "vectorization",
        "changed": "LANES=16 -> 1",
        "along": "MICRO_ROWS=14 -> 6",
        "variant": "v2",
        "seconds": None,
        "time_ratio": None,
        "time_ratio_low": None,
        "time_ratio_high": None,
        "verdict": "wrong_value",
    },
)
ROUNDS = ({"round": 3, "variants": 29},)


def test_the_page() -> None:
    """Both ratios of what has a time, the outcome of what has none; the commands to repeat it."""
    pairs = {"v1": ConfidenceInterval(value=0.25, low=0.2, high=0.5, confidence=0.95)}
    text = "\n".join(page(ROWS, ROUNDS, pairs, (overrides("bert_base", 4), "python -m x")))
    assert (
        "| register blocking | `MICRO_ROWS=14 -> 1` |  | 9.00 ms | 4.500 (4.400 to 4.600) | pays "
        "| 4.000 (2.000 to 5.000) |" in text
    )
    assert "| vectorization | `LANES=16 -> 1` | `MICRO_ROWS=14 -> 6` | – | – | wrong value | – |" in text
    assert "29 variants in 4 rounds" in text
    assert "search=ablation search.ablation.search=optuna search.rounds=4" in text
