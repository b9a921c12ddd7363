"""What answers are worth: typed, and no source that would have the compiler read other files."""

import pytest

from pipeline.backends.language import CPP
from pipeline.records.search.model_attempt import ModelAnswer
from pipeline.search.agents.answer_parsing import Unusable, read_change, read_source
from tests.search.agents.making import request


def answer(text: str, finish: str | None = "stop", refusal: str | None = None) -> ModelAnswer:
    """An answer with that text."""
    return ModelAnswer(
        request=request(),
        model=None,
        text=text,
        refusal=refusal,
        finish=finish,
        prompt_tokens=None,
        completion_tokens=None,
        seconds=1.0,
        tries=1,
        created="",
    )


def block(source: str, fence: str = "cpp") -> ModelAnswer:
    """An answer with one block of code."""
    return answer(f"Here:\n```{fence}\n{source}\n```\nDone.")


@pytest.mark.parametrize("fence", ["cpp", "c++", "", "CPP"])
def test_one_block_is_a_source(fence: str) -> None:
    """With or without the name of its language."""
    assert read_source(block("int x;", fence), CPP, ()) == "int x;\n"


def test_thoughts_do_not_count() -> None:
    """A reasoning model's blocks of code in its thoughts are not its answer."""
    text = "<think>maybe\n```cpp\nint y;\n```\n</think>\n```cpp\nint x;\n```\n"
    assert read_source(answer(text), CPP, ()) == "int x;\n"


@pytest.mark.parametrize(
    ("given", "outcome", "reason"),
    [
        (answer("Use vectors."), "no_code", "no block of code"),
        (block("   "), "no_code", "the block of code is empty"),
        (answer("```cpp\nint x;\n```\n```cpp\nint y;\n```"), "several_blocks", "2 blocks of code, expected"),
        (block("x = 1", "python"), "wrong_language", "a block of 'python', expected one of c, c++"),
        (answer("```cpp\nint x;\n```", finish="length"), "truncated", "cut off after 1000 tokens"),
        (answer("```cpp\nint x;\n"), "truncated", "a block of code that does not end"),
        (answer(" \n"), "empty", "an answer without text"),
        (answer("I'm sorry, but I can't help with that."), "refused", "it refused"),
        (answer("", refusal="Not allowed."), "refused", "it refused: Not allowed."),
        (answer("x", finish="content_filter"), "refused", "it refused: its content filter"),
        (block("x" * 200_001), "too_long", "a source of 200002 characters, expected at most 200000"),
    ],
)
def test_unusable_answers_are_typed(given: ModelAnswer, outcome: str, reason: str) -> None:
    """Each with its reason."""
    found = read_source(given, CPP, ())
    assert isinstance(found, Unusable)
    assert found.outcome == outcome
    assert found.reason.startswith(reason)


@pytest.mark.parametrize(
    "line",
    [
        '#include "/etc/passwd"',
        '#include "../../.git/config"',
        "#include </etc/passwd>",
        "#include <../../etc/passwd>",
        '#  include/**/"/etc/passwd"',
        '#/**/include "/etc/passwd"',
        '#inc\\\nlude "/etc/passwd"',
        '%:include "/etc/passwd"',
        '#define F "/etc/passwd"\n#include F',
        '#include_next "/etc/passwd"',
        "#embed </etc/passwd>",
        '#if __has_include("x")\n#import "/etc/passwd"\n#endif',
        'const char* a = R"(" /* )";\n#include "/etc/passwd"\nconst char* b = R"( */ ")";',
    ],
)
def test_no_other_file_is_read(line: str) -> None:
    """What the compiler says of such a file would leave this machine with the next prompt."""
    found = read_source(block(f"{line}\nint x;"), CPP, ("../vector.hpp",))
    assert isinstance(found, Unusable)
    assert found.outcome == "forbidden_include"
    assert 'only system headers and "../vector.hpp" may be included' in found.reason


def test_headers_that_are_the_kernels_own() -> None:
    """System headers and what the declared source includes."""
    source = '#include <cmath>\n#include <sys/types.h>  // sizes\n#include "../vector.hpp"\nint x;'
    assert read_source(block(source), CPP, ("../vector.hpp",)) == f"{source}\n"


def test_the_one_change() -> None:
    """Behind the mark, on one line, cut short."""
    given = "I see.\n**CHANGE:** use vectors,\nbecause they are wide." + " and" * 1000
    found = read_change(answer(given))
    assert isinstance(found, str)
    assert found.startswith("use vectors, because")
    assert len(found) == 800


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        ("Use vectors.", "no_change"),
        ("CHANGE:  \n", "no_change"),
        ("", "empty"),
        ("I cannot do this.", "refused"),
    ],
)
def test_no_change_is_typed(given: str, outcome: str) -> None:
    """The judge's unusable answers."""
    found = read_change(answer(given))
    assert isinstance(found, Unusable)
    assert found.outcome == outcome
