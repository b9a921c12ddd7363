"""The instructions of AMD's assembly text, which Triton keeps. In: the text. Out: static counts by class."""

import re
from collections import Counter

# First match wins. Names as in the CDNA 3 and CDNA 4 instruction set manuals.
_CLASSES = (
    (re.compile(r"s_(buffer_)?load_"), "load_scalar"),
    (re.compile(r"v_s?mfma_|v_smfmac_"), "matrix"),
    (re.compile(r"v_(pk_)?(fma|fmac|mad|mac|dot\d)_?\w*_(f|bf)\d+|v_fma_mix|v_fmamk|v_fmaak"), "fma"),
    (re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_"), "special"),
    (re.compile(r"v_cvt_|v_fract_|v_(floor|ceil|trunc|rndne)_"), "convert"),
    (
        re.compile(r"v_(readlane|writelane|readfirstlane|permlane\w*)_|ds_b?permute|ds_swizzle|v_\w+_dpp"),
        "shuffle",
    ),
    (re.compile(r"v_(pk_)?\w*_(f|bf)(16|32|64)\b|v_(pk_)?\w*_(f|bf)(16|32|64)_"), "float"),
    (
        re.compile(r"(v|s)_\w*(add|sub|mul|mad|lsh|ash|and|or|xor|not|min|max|cmp|cmpk|bf|sext|abs)\w*"),
        "integer",
    ),
    (re.compile(r"(global|buffer|flat)_atomic|ds_\w*(add|min|max|cmpst)_"), "atomic"),
    (re.compile(r"ds_read|ds_load"), "load_shared"),
    (re.compile(r"ds_write|ds_store"), "store_shared"),
    (re.compile(r"scratch_"), "local"),
    (re.compile(r"s_barrier"), "barrier"),
    (re.compile(r"s_wait"), "wait"),
    (re.compile(r"s_c?branch|s_setpc|s_swappc|s_call|s_endpgm"), "branch"),
)
_GLOBAL = re.compile(r"(?:global|buffer|flat)_(load|store)_(\w+)")
_SIZES = {"byte": 8, "ubyte": 8, "sbyte": 8, "short": 16, "ushort": 16, "sshort": 16, "dword": 32}
PADDING = ("s_nop", "s_code_end")
_INSTRUCTION = re.compile(r"^\t([a-z]\w+)([^;\n]*)", re.MULTILINE)


def instruction_mix(text: str) -> dict[str, int]:
    """Static counts by class; loads and stores of global memory by width in bits (`load_global_128`)."""
    mix: Counter[str] = Counter()
    for name, operands in _INSTRUCTION.findall(text):
        if name not in PADDING:
            mix[class_of(name, operands)] += 1
    return dict(sorted(mix.items()))


def matrix_instructions(text: str) -> dict[str, int]:
    """Static counts of the matrix instructions by name (`v_mfma_f32_32x32x8_f16`)."""
    names = Counter(
        name for name, operands in _INSTRUCTION.findall(text) if class_of(name, operands) == "matrix"
    )
    return dict(sorted(names.items()))


def class_of(name: str, operands: str) -> str:
    """Class of one instruction."""
    if match := _GLOBAL.match(name):
        if "lds" in name or operands.rstrip().endswith(" lds"):
            return "async_copy"
        return f"{match[1]}_global_{_width(match[2])}"
    return next((kind for pattern, kind in _CLASSES if pattern.match(name)), "other")


def _width(suffix: str) -> int:
    """`dwordx4` -> 128, `short_d16_hi` -> 16."""
    word = suffix.split("_", maxsplit=1)[0]
    base, _, count = word.partition("x")
    return _SIZES.get(base, 32) * int(count or 1)
