"""The page of false alarms holds what both commands print."""

from tests.benchmarks.false_alarms import page

EQUALS = """\
2 of 3 steps (67%) done
| kernel | workload | false alarms |
|---|---|---:|
| softmax | bert_base | 0.5% |

Median of the minimum detectable effect: 5.1%.
"""


def test_the_page() -> None:
    """Without Snakemake's progress, each result below its command."""
    commands = [
        ("pipeline", "aa", "--comparisons", "200"),
        ("pipeline", "aa", "--comparisons", "40"),
        ("tests.benchmarks.slowdown", "--percent", "3"),
    ]
    said = [EQUALS, EQUALS.replace("softmax", "rms_norm"), "softmax: of 40 comparisons 40 slower\n"]
    text = "\n".join(page(commands, said, "Measured here."))
    assert "Measured here. Each comparison starts all processes anew." in text
    assert "steps (67%)" not in text
    first, second = text.index("kernelmill aa --comparisons 200"), text.index("| softmax |")
    third, last = text.index("python -m tests.benchmarks.slowdown --percent 3"), text.index("Softmax: of 40")
    each, more = text.index("kernelmill aa --comparisons 40"), text.index("| rms_norm |")
    assert first < second < each < more < third < last
    assert text.index("minimum detectable effect: 5.1%.") < each
