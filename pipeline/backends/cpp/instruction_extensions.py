"""Which extension of a CPU's instruction set a vector instruction needs, named as Linux names it.

In: mnemonic and operands as objdump writes them. Out: the least extension, after the tables of Intel's
Software Developer's Manual (volume 2, "CPUID feature flag") and Arm's Architecture Reference Manual.
"""

import re

# First match wins, over "mnemonic operands".
_EXTENSIONS = (
    (re.compile(r"tdp|tile"), "amx_tile"),
    (re.compile(r"vdpbf16|vcvtne2?ps2bf16"), "avx512_bf16"),
    (re.compile(r"vpdp\w+ .*(%zmm|%[xy]mm(1[6-9]|[23]\d)|\{%k)"), "avx512_vnni"),
    (re.compile(r"vpdp"), "avx_vnni"),
    (re.compile(r"v(add|sub|mul|div|sqrt|min|max|fn?m\w+\d|cmp)[ps]h "), "avx512_fp16"),
    (re.compile(r"\w+ .*(%zmm|%k\d|%[xy]mm(1[6-9]|[23]\d))"), "avx512f"),
    (re.compile(r"vfn?m(add|sub)"), "fma"),
    (re.compile(r"vcvt(ph2ps|ps2ph)"), "f16c"),
    (re.compile(r"vp?gather|vp\w+ .*%ymm|v(insert|extract)i128|vbroadcasti128"), "avx2"),
    (re.compile(r"v\w+ .*%[xy]mm|vzero"), "avx"),
    (re.compile(r"\w+ .*%xmm"), "sse2"),
    (re.compile(r"\w+ .*\bz\d+\."), "sve"),
    (re.compile(r"bfdot|bfmmla|bfmlal"), "bf16"),
    (re.compile(r"[us]dot"), "asimddp"),
    (re.compile(r"\w+ .*(\bv\d+\.|\bq\d+\b)"), "asimd"),
)


# Most instructions are of the base set: one search for them instead of all of these.
_CANDIDATE = re.compile(r"v|t(dp|ile)|bf|[us]dot|.*(mm|%k\d|\b[vqz]\d)")
NAMES = tuple(name for _, name in _EXTENSIONS)
"""All that is told apart; `avx512f` stands for its subsets bw, cd, dq and vl as well."""


def extension(mnemonic: str, operands: str) -> str | None:
    """The extension; None for an instruction of the base set."""
    text = f"{mnemonic} {operands}"
    if not _CANDIDATE.match(text):
        return None
    return next((name for pattern, name in _EXTENSIONS if pattern.match(text)), None)
