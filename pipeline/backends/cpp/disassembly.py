"""The text of `objdump -d` as instructions. In: the text and the functions of interest. Out: their lines."""

import re

from pipeline.records.record import Record

_LABEL = re.compile(r"^[0-9a-f]+ <([^>]+)>:$")
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*?)(?:\s+(?:# |//).*)?$")
_STACK = re.compile(r"\(%rsp|\[(sp|x29)")
_FRAME_POINTER = re.compile(r"\(%rbp")
_SETS_FRAME_POINTER = "mov", "%rsp,%rbp"


class DisassemblyLine(Record, frozen=True, kw_only=True):
    """One instruction."""

    function: str
    address: int
    mnemonic: str
    operands: str
    on_stack: bool
    """Whether it names a place in the function's stack frame: through the stack pointer, or through the frame
    pointer where the function sets one up; elsewhere that is a register like any other."""


def read_lines(text: str, functions: set[str]) -> tuple[DisassemblyLine, ...]:
    """Every instruction of the given functions, in their order."""
    found: list[tuple[str, int, str, str]] = []
    current = ""
    for line in text.splitlines():
        if label := _LABEL.match(line):
            current = label[1]
        elif current in functions and (code := _INSTRUCTION.match(line)):
            found.append((current, int(code[1], 16), code[2], code[3].strip()))
    framed = {function for function, _, *code in found if tuple(code) == _SETS_FRAME_POINTER}
    return tuple(
        DisassemblyLine(
            function=function,
            address=address,
            mnemonic=mnemonic,
            operands=operands,
            on_stack=bool(
                _STACK.search(operands) or (function in framed and _FRAME_POINTER.search(operands))
            ),
        )
        for function, address, mnemonic, operands in found
    )
