"""Compare kernels whose bounds are derived, or not of one sum, with their references; print JSON lines.

A program of its own, because Triton either interprets or compiles for the life of a process:
TRITON_INTERPRET=1 python -m tests.kernels.derived_bounds KERNEL…
"""

import functools
import itertools
import json
import sys
import tempfile
import warnings
from pathlib import Path

import torch

from pipeline.backends.registry import backend
from pipeline.plan.config.compose import composer
from pipeline.records.configuration.kernel import Kernel
from pipeline.records.formula import evaluate_number
from pipeline.records.record import from_plain
from pipeline.records.results.compiled import Compiled, StaticFacts
from pipeline.verify.oracle.reference import ReferenceOracle, find_function, find_magnitude
from pipeline.verify.oracle.tolerance import aligned, deviation
from tests.backends.triton.triton_jobs import ROOT, declared_job
from tests.kernels.test_cpp_kernels import inputs_of, launch_of, problem_of

NO_BINARY = Compiled(
    artifact="none", artifact_digest="", functions=(), facts=StaticFacts(code_bytes=0), files=()
)
ROWS = [(40, 257), (1, 1), (7, 17), (0, 5)]
ATTENTION = [
    *((2, 1, 13, 29, 24), (1, 3, 5, 5, 17), (1, 4, 1, 70, 64), (1, 1, 1, 1, 1), (2, 2, 70, 130, 40)),
    *((1, 2, 9, 4, 8), (0, 1, 3, 3, 4), (1, 1, 0, 3, 4)),
]
"""Batch, groups, queries, keys, depth."""
WINDOWS = [sizes for sizes in ATTENTION if sizes[3] >= sizes[2]]
"""The same with a key for each query."""
DEEP_KEYS = [
    (2, 1, 13, 29, 24, 16),
    (1, 3, 5, 5, 17, 70),
    (1, 1, 70, 70, 40, 3),
    (1, 1, 1, 1, 1, 1),
    (0, 1, 3, 3, 4, 2),
]
"""Batch, groups, queries, keys, depth of these, depth of values."""
PACKED = [(130, 5, 2, 3, 24), (1, 1, 1, 1, 1), (70, 40, 1, 1, 17), (300, 2, 1, 4, 64), (0, 2, 1, 3, 4)]
"""Tokens, sequences, heads of keys, heads of queries for each, depth."""
BLOCKS = [
    *((2, 1, 130, 200, 24, 3), (1, 3, 70, 70, 17, 2), (1, 4, 1, 300, 64, 4), (1, 1, 1, 1, 1, 1)),
    *((1, 2, 150, 70, 8, 5), (0, 1, 3, 3, 4, 2), (1, 1, 0, 3, 4, 2)),
]
"""The same, and of how many blocks one is computed."""
BLOCK_SCORES = [
    (2, 3, 2, 4, 33, 13),
    (1, 1, 1, 1, 1, 1),
    (1, 4, 3, 3, 64, 32),
    (1, 2, 3, 2, 16, 5),
    (0, 1, 1, 1, 4, 2),
]
"""Batch, groups, blocks of queries, blocks of keys, their size, bytes of a row."""
SELECTED = [
    *((2, 37, 70, 24, 3), (1, 16, 16, 17, 1), (1, 1, 1, 1, 1), (1, 40, 300, 64, 9), (1, 20, 33, 8, 5)),
    (0, 3, 3, 4, 2),
]
"""Batch, queries, keys, depth, blocks or parents of a list."""
LINEAR = [
    *((7, 70, 300), (1, 33, 17), (2, 130, 129), (1, 1, 1), (125, 3, 64)),
    *((3, 5, 0), (0, 4, 4), (4, 0, 4)),
]
"""M, N, K."""
DYNAMIC = [
    *((7, 70, 300), (1, 33, 17), (2, 130, 129), (1, 1, 1), (125, 3, 64), (3, 5, 600)),
    *((3, 5, 0), (0, 4, 4), (4, 0, 4)),
]
"""The same, with sums of more than one block."""
DYNAMICS = (
    *("linear_switchback", "linear_switchback_backward"),
    *("linear_fp8", "linear_fp8_backward", "linear_fp8_blocks", "linear_quartet"),
)
LINEARS = (
    "linear_int4",
    "linear_int8",
    "linear_mxfp4",
    "linear_nf4",
    "linear_shift",
    "linear_ternary",
    "linear_trit_planes",
)
SPARSE = [
    *((7, 70, 43, 7), (1, 33, 17, 1), (2, 130, 20, 16), (1, 1, 1, 1), (125, 3, 9, 33)),
    *((3, 40, 300, 2), (5, 40, 2, 250), (3, 5, 0, 4), (0, 4, 4, 2), (4, 0, 4, 2)),
]
"""M, N, weights of a row that are kept, columns in a segment."""
SPARSES = ("linear_2to4", "linear_unstructured")
ROTATED = [(13, 3, 2, 2, 23), (1, 1, 1, 2, 1), (5, 4, 1, 2, 64), (0, 2, 1, 2, 8)]
"""Tokens, heads, heads of keys, two halves, their size."""
CLASSES = [(13, 300, 70), (1, 1, 1), (130, 17, 33), (0, 5, 3)]
"""Rows, classes, width."""
SAMPLED = [(7, 300), (1, 1), (13, 2100), (3, 17), (0, 5)]
"""Rows, classes."""
EMBEDDED = [(40, 13, 70), (1, 1, 1), (130, 300, 17), (7, 5, 257), (0, 3, 5)]
"""Rows, classes, width."""
CONVOLUTIONS = [(2, 70, 40, 4), (1, 1, 1, 1), (1, 2, 17, 4), (3, 130, 9, 3), (0, 5, 3, 4)]
"""Batch, steps, channels, taps."""
LINEAR_ATTENTION = [(1, 2, 70, 40), (1, 1, 1, 1), (2, 1, 130, 17), (1, 3, 5, 64), (0, 1, 3, 4)]
"""Batch, heads, steps, depth."""
WINDOWED = [(130, 5, 3, 24), (1, 1, 1, 1), (70, 40, 1, 17), (300, 2, 1, 64), (0, 2, 1, 4)]
"""Tokens, windows, heads, depth."""
STATE_SPACES = [(1, 70, 3, 40, 16), (1, 1, 1, 1, 1), (2, 130, 2, 17, 33), (1, 5, 1, 70, 128), (0, 3, 2, 4, 5)]
"""Batch, steps, heads, depth, states."""
DELTAS = [(1, 2, 40, 40, 24), (1, 1, 1, 1, 1), (2, 1, 70, 17, 33), (1, 3, 5, 64, 64), (0, 1, 3, 4, 4)]
"""Batch, heads, steps, depth, depth of values."""
ADAPTERS = [(13, 70, 13, 40, 3), (1, 1, 1, 1, 1), (40, 17, 8, 300, 1), (5, 33, 40, 16, 7), (0, 4, 2, 4, 2)]
"""Tokens, depth, rank, columns, adapters."""
MIXTURES = [
    (13, 70, 13, 40, 3, 2),
    (1, 1, 1, 1, 1, 1),
    (150, 17, 8, 300, 1, 2),
    (5, 33, 40, 16, 7, 4),
    (0, 4, 2, 4, 2, 2),
]
"""The same, and how many adapters a token has."""
PAGES = [(2, 3, 5, 70, 7, 16, 9), (1, 1, 1, 1, 1, 1, 1), (3, 1, 8, 64, 40, 4, 13), (0, 2, 4, 8, 2, 16, 3)]
"""Sequences, heads of keys, heads of queries for each, depth, pages of a sequence, their size, all pages."""
LATENT_PAGES = [
    (2, 20, 40, 8, 7, 16, 9),
    (1, 1, 1, 1, 1, 1, 1),
    (3, 5, 17, 33, 40, 4, 13),
    (0, 2, 8, 4, 2, 16, 3),
]
"""Sequences, heads, depth of latent vector and rest, pages of a sequence, their size, all pages."""
LOW_RANK = [(13, 70, 13, 40), (1, 1, 1, 1), (40, 17, 40, 300), (130, 130, 16, 5), (3, 4, 0, 2), (0, 4, 2, 4)]
"""Rows, depth, rank, columns."""
EXPERTS = [
    (13, 70, 40, 3, 2),
    (1, 1, 1, 1, 1),
    (150, 17, 33, 1, 1),
    (40, 130, 200, 7, 3),
    (5, 9, 4, 70, 1),
    (0, 4, 2, 4, 2),
]
"""Tokens, depth, hidden, experts, top_k."""
RECURRENCES = [(7, 13, 40), (1, 1, 1), (70, 2, 17), (3, 5, 64), (2, 3, 130), (0, 3, 5), (3, 0, 4)]
"""Steps, batch, units."""
RECURRENT = ("lstm", "gru", "slstm")
COMPRESSED = [(7, 70, 300), (1, 33, 17), (1, 1, 1), (3, 5, 0), (0, 4, 4)]
"""M, N, K."""
DIAGONAL = [(2, 70, 13), (1, 1, 1), (1, 140, 3), (3, 5, 40), (0, 3, 5)]
"""Batch, steps, units."""
PROJECTED = [(70, 150, 40), (1, 1, 1), (33, 17, 130), (300, 5, 8), (0, 5, 3)]
"""Rows, columns, rank."""
SHAPES = {
    "attention": ATTENTION,
    "attention_causal": ATTENTION,
    "attention_window": WINDOWS,
    "attention_varlen": PACKED,
    "attention_latent": DEEP_KEYS,
    "attention_block_sparse": BLOCKS,
    "block_scores_int4": BLOCK_SCORES,
    "block_top_k": SELECTED,
    "attention_selected": SELECTED,
    "attention_selected_backward": SELECTED,
    "attention_backward": ATTENTION,
    "attention_causal_backward": ATTENTION,
    "causal_conv1d": CONVOLUTIONS,
    "causal_conv1d_backward": CONVOLUTIONS,
    "linear_attention": LINEAR_ATTENTION,
    "linear_attention_windows": WINDOWED,
    "state_space": STATE_SPACES,
    "gated_delta_rule": DELTAS,
    "fused_linear_cross_entropy": CLASSES,
    "top_k_top_p_sampling": SAMPLED,
    "embedding": EMBEDDED,
    "embedding_backward": EMBEDDED,
    "rotary_embedding": ROTATED,
    "rotary_embedding_backward": ROTATED,
    "batched_lora": ADAPTERS,
    "mixture_lora": MIXTURES,
    "linear_low_rank": LOW_RANK,
    "paged_attention": PAGES,
    "paged_attention_latent": LATENT_PAGES,
    "moe_experts": EXPERTS,
    **dict.fromkeys(RECURRENT, RECURRENCES),
    "diagonal_gru": DIAGONAL,
    "galore_adamw": PROJECTED,
    "apollo_adamw": PROJECTED,
    "apollo_mini_adamw": PROJECTED,
    "linear_dfloat11": COMPRESSED,
    **dict.fromkeys(LINEARS, LINEAR),
    **dict.fromkeys(DYNAMICS, DYNAMIC),
    "linear_2to4": LINEAR,
    "linear_unstructured": SPARSE,
}
KINDS = ("normal", "large", "small", "special")
PACKED_WEIGHTS = [
    {"MICRO_ROWS": 6, "LATE_SCALE": False, "PANEL": False, "PREFETCH": 0},
    {"LANES": 16, "MICRO_VECTORS": 1},
    {"LANES": 1, "MICRO_ROWS": 1, "MICRO_VECTORS": 1},
    {"TABLE": False},
    {"TABLE": False, "LATE_SCALE": False},
]
"""Variants of one source that kernels for packed weights take in turn; codes of 8 bits have no table."""
VARIANTS = {
    ("softmax_backward", "cpp"): [{}, {"LANES": 16, "UNROLL": 4}, {"LANES": 1, "UNROLL": 1}],
    ("rms_norm_backward", "cpp"): [{}, {"LANES": 16, "CHUNKS": 32}, {"LANES": 1, "UNROLL": 1}],
    ("attention", "cpp"): [
        {"LANES": 1, "MICRO_ROWS": 1, "MICRO_VECTORS": 1, "PACK": False, "BLOCK_K": 64},
        {"LANES": 16, "MICRO_ROWS": 6, "MICRO_VECTORS": 4, "BLOCK_Q": 16},
    ],
    ("attention_causal", "cpp"): [
        {},
        {"SKIP": False, "BLOCK_K": 64},
        {"LANES": 16, "PACK": False, "BLOCK_Q": 16, "BLOCK_K": 64},
    ],
    ("attention_window", "cpp"): [
        {},
        {"SKIP": False, "BLOCK_K": 64},
        {"LANES": 16, "PACK": False, "BLOCK_Q": 16, "BLOCK_K": 64},
    ],
    ("attention_varlen", "cpp"): [
        {},
        {"SKIP": False, "BLOCK_K": 64, "LONGEST_FIRST": False},
        {"LANES": 16, "PACK": False, "BLOCK_Q": 16, "BLOCK_K": 64},
    ],
    ("attention_latent", "cpp"): [
        {},
        {"LANES": 16, "PACK": False, "BLOCK_Q": 16, "BLOCK_K": 64},
    ],
    ("attention_block_sparse", "cpp"): [
        {},
        {"SKIP": False, "BLOCK_Q": 96},
        {"LANES": 16, "PACK": False, "BLOCK_Q": 16},
    ],
    ("block_scores_int4", "cpp"): [
        {},
        {"LANES": 16, "MICRO_ROWS": 6, "MICRO_VECTORS": 4, "INTEGER": False},
        {"LANES": 8, "MICRO_VECTORS": 4},
        {"LANES": 1, "MICRO_ROWS": 1, "MICRO_VECTORS": 1, "INTEGER": False},
    ],
    ("block_top_k", "cpp"): [
        {},
        {"LANES": 8, "MICRO_ROWS": 4, "MICRO_VECTORS": 2, "EARLY": False},
        {"LANES": 1, "MICRO_ROWS": 1},
    ],
    ("attention_selected", "cpp"): [
        {},
        {"LANES": 8, "MICRO_VECTORS": 2, "STEP": 16, "PREFETCH": False},
        {"LANES": 1, "MICRO_ROWS": 1, "STEP": 1},
    ],
    ("attention_selected_backward", "cpp"): [
        {},
        {"LANES": 8, "MICRO_ROWS": 8, "MICRO_VECTORS": 2},
        {"LANES": 1, "MICRO_ROWS": 1},
    ],
    ("attention_backward", "cpp"): [
        {"LANES": 1, "MICRO_ROWS": 1, "MICRO_VECTORS": 1, "KEEP": False, "TASKS": 1},
        {"LANES": 16, "MICRO_VECTORS": 4, "BLOCK_Q": 16, "BLOCK_K": 64},
    ],
    ("attention_causal_backward", "cpp"): [
        {},
        {"MICRO_ROWS": 4, "SKIP": False, "KEEP": False, "BLOCK_K": 64},
        {"LANES": 16, "BLOCK_Q": 16, "BLOCK_K": 64, "TASKS": 16},
    ],
    ("linear_int8", "cpp"): [{}, *PACKED_WEIGHTS[:3]],
    **{
        (name, "cpp"): [{}, *itertools.islice(itertools.cycle(PACKED_WEIGHTS), 2 * turn, 2 * turn + 2)]
        for turn, name in enumerate(name for name in LINEARS if name != "linear_int8")
    },
    **{
        (name, "cpp"): [
            {},
            {"DENSE": True, "MICRO_ROWS": 6},
            {"LANES": 16, "MICRO_VECTORS": 1, "COLUMNS": 64},
            {"LANES": 16, "TABLE": False},
            {"LANES": 1, "MICRO_ROWS": 1, "MICRO_VECTORS": 1, "DENSE": True},
        ]
        for name in SPARSES
    },
    **{
        (name, "cpp"): [
            {},
            {"LANES": 16, "MICRO_ROWS": 6, "MICRO_VECTORS": 4, "BLOCK_K": 256, "FUSE": False},
            {"DOT": False, "BLOCK_K": 256},
            {"LANES": 1, "MICRO_ROWS": 1, "MICRO_VECTORS": 1},
        ]
        for name in DYNAMICS
    },
    ("add_layer_norm", "cpp"): [
        {},
        {"LANES": 16, "UNROLL": 4, "STREAM": True},
        {"LANES": 1, "UNROLL": 1, "FUSE": False},
    ],
    ("add_layer_norm_backward", "cpp"): [
        {},
        {"LANES": 16, "CHUNKS": 32},
        {"LANES": 1, "UNROLL": 1, "FUSE": False},
    ],
    ("rotary_embedding", "cpp"): [
        {},
        {"LANES": 16, "STREAM": True},
        {"LANES": 1, "UNROLL": 1, "FUSE": False},
    ],
    ("rotary_embedding_backward", "cpp"): [{}],
    ("cross_entropy", "cpp"): [{}, {"LANES": 16, "UNROLL": 8}, {"LANES": 1, "UNROLL": 1, "ONLINE": False}],
    ("cross_entropy_backward", "cpp"): [
        {},
        {"LANES": 16, "ONLINE": False, "STREAM": True},
        {"LANES": 1, "UNROLL": 1},
    ],
    ("fused_linear_cross_entropy", "cpp"): [
        {},
        {"LANES": 16, "MICRO_ROWS": 8, "BLOCK_K": 512, "CHUNK": 64},
        {"LANES": 1, "MICRO_ROWS": 1, "MICRO_VECTORS": 1, "FUSE": False},
    ],
    ("top_k_top_p_sampling", "cpp"): [
        {},
        {"LANES": 16, "UNROLL": 1, "BLOCK": 64},
        {"LANES": 1, "UNROLL": 1, "BLOCK": 0},
    ],
    ("embedding", "cpp"): [
        {},
        {"LANES": 16, "PREFETCH": 4, "STREAM": True},
        {"LANES": 1, "UNROLL": 1, "PREFETCH": 0},
    ],
    ("embedding_backward", "cpp"): [
        {},
        {"LANES": 16, "FUSE": False},
        {"LANES": 1, "UNROLL": 1, "STREAM": False},
    ],
    ("adamw", "cpp"): [{}, {"LANES": 16, "STREAM": True}, {"LANES": 1, "UNROLL": 1, "FUSE": False}],
    ("prune_2to4", "cpp"): [{}, {"LANES": 16, "COLUMNS": 16}, {"LANES": 1}, {"LANES": 8, "COLUMNS": 64}],
    ("adamw_8bit", "cpp"): [
        {},
        {"LANES": 16, "ARITHMETIC": False, "FUSE": False},
        {"LANES": 1, "UNROLL": 1},
    ],
    ("galore_adamw", "cpp"): [
        {},
        {"LANES": 16, "MICRO_ROWS": 14, "BLOCK_K": 512, "STRIP": 64, "PREFETCH": 8},
        {"LANES": 1, "MICRO_ROWS": 1, "MICRO_VECTORS": 1, "FUSE": False},
    ],
    ("apollo_adamw", "cpp"): [
        {},
        {"LANES": 16, "MICRO_ROWS": 14, "BLOCK_K": 512, "STRIP": 64, "PREFETCH": 8, "FUSE": False},
        {"LANES": 1, "MICRO_ROWS": 1, "MICRO_VECTORS": 1, "STREAM": False},
    ],
    ("apollo_mini_adamw", "cpp"): [{}, {"FUSE": False}],
    ("linear_dfloat11", "cpp"): [
        {},
        {"MICRO_ROWS": 6, "FUSE": False, "TABLE": False},
        {"LANES": 16, "MICRO_VECTORS": 1, "SYMBOLS": 1},
        {"LANES": 1, "MICRO_ROWS": 1, "MICRO_VECTORS": 1},
    ],
    ("linear_dfloat11", "triton"): [{}, {"BLOCK_M": 64, "BLOCK_K": 32, "SYMBOLS": 1, "num_stages": 1}],
    ("causal_conv1d", "cpp"): [
        {},
        {"LANES": 16, "TIME": 8, "STREAM": True},
        {"LANES": 1, "TIME": 1, "UNROLL": 1},
    ],
    ("causal_conv1d_backward", "cpp"): [
        {},
        {"LANES": 16, "PIECE": 32, "BLOCK": 16},
        {"LANES": 1, "UNROLL": 1},
    ],
    ("linear_attention", "cpp"): [
        {},
        {"LANES": 16, "MICRO_ROWS": 6, "MICRO_VECTORS": 4, "CHUNK": 16, "COLUMNS": 32, "SKIP": False},
        {"LANES": 1, "MICRO_ROWS": 1, "MICRO_VECTORS": 1, "CHUNK": 1},
    ],
    ("linear_attention_windows", "cpp"): [
        {},
        {"LANES": 16, "MICRO_ROWS": 6, "MICRO_VECTORS": 4, "CHUNK": 16},
        {"LANES": 1, "MICRO_ROWS": 1, "MICRO_VECTORS": 1},
    ],
    ("state_space", "cpp"): [
        {},
        {
            "LANES": 16,
            "MICRO_ROWS": 6,
            "MICRO_VECTORS": 4,
            "CHUNK": 16,
            "COLUMNS": 32,
            "HEADS": 4,
            "SKIP": False,
        },
        {"LANES": 1, "MICRO_ROWS": 1, "MICRO_VECTORS": 1, "CHUNK": 1, "HEADS": 1},
    ],
    ("gated_delta_rule", "cpp"): [
        {},
        {"LANES": 16, "MICRO_ROWS": 6, "MICRO_VECTORS": 4, "CHUNK": 16, "COLUMNS": 32},
        {"LANES": 1, "MICRO_ROWS": 1, "MICRO_VECTORS": 1, "CHUNK": 1},
    ],
    **{
        (name, "cpp"): [
            {},
            {"LANES": 16, "UNROLL": 1},
            {"LANES": 1, "UNROLL": 4, "GROUP": 1},
        ]
        for name in ("batched_lora", "mixture_lora")
    },
    ("paged_attention", "cpp"): [
        {},
        {"ROWS": 1, "UNROLL": 4, "SPLIT": 0, "PREFETCH": False},
        {"LANES": 16, "ROWS": 2, "BLOCK": 16, "SPLIT": 256},
        {"LANES": 1, "UNROLL": 1},
    ],
    ("paged_attention", "triton"): [{}, {"SPLIT": 1, "BLOCK_K": 32, "num_stages": 1}],
    ("paged_attention_latent", "cpp"): [
        {},
        {"LANES": 16, "ROWS": 2, "BLOCK": 16, "SPLIT": 256, "PREFETCH": False},
        {"LANES": 1, "ROWS": 1, "UNROLL": 1},
    ],
    ("paged_attention_latent", "triton"): [{}, {"SPLIT": 1, "REUSE": False, "BLOCK_K": 16}],
    ("linear_low_rank", "cpp"): [
        {},
        {"FUSE": False, "PREFETCH": 8},
        {"LANES": 16, "MICRO_ROWS": 8, "BLOCK_K": 512},
        {"LANES": 1, "MICRO_ROWS": 1, "MICRO_VECTORS": 1},
    ],
    ("linear_low_rank", "triton"): [
        {},
        {"FUSE": False, "SPLIT": 1, "BLOCK_M": 16},
        {"BLOCK_M": 16, "BLOCK_K": 64, "SPLIT": 1, "num_stages": 1},
    ],
    **{
        (name, "cpp"): [
            {"ROWS": 2, "UNROLL": 2, "SPLIT": True},
            {},
            {"LANES": 16, "ROWS": 6},
            {"LANES": 1, "ROWS": 1},
        ]
        for name in RECURRENT
    },
    **{(name, "triton"): [{"algorithm": "resident"}, {}] for name in RECURRENT},
    ("diagonal_gru", "cpp"): [
        {"NEWTON": True, "UNROLL": 2, "WINDOW": 32},
        {"UNROLL": 2},
        {"LANES": 16, "NEWTON": True, "UNROLL": 4, "WINDOW": 256},
        {"LANES": 1, "UNROLL": 1},
        {"LANES": 1, "UNROLL": 1, "NEWTON": True},
    ],
    ("diagonal_gru", "triton"): [{}, {"WINDOW": 16, "BLOCK_C": 16}, {"WINDOW": 1}],
    **{
        (name, "triton"): [{}, {"BLOCK_K": 32, "BLOCK_N": 64, "SPLIT": 4}]
        for name in ("batched_lora", "mixture_lora")
    },
    ("moe_experts", "cpp"): [
        {},
        {"LANES": 16, "MICRO_ROWS": 4, "MICRO_VECTORS": 4, "GROUP": 24, "PREFETCH": False},
        {"LANES": 1, "MICRO_ROWS": 1, "MICRO_VECTORS": 1, "GROUP": 1, "FUSE": False},
    ],
    ("moe_experts", "triton"): [{}, {"BLOCK_M": 64, "BLOCK_K": 64, "FUSE": False}],
    ("softmax_backward", "triton"): [{"algorithm": "single"}, {"ROWS": 4, "num_stages": 3}],
    ("rms_norm_backward", "triton"): [{}, {"PIECE": 16, "BLOCK": 512}],
    ("add_layer_norm", "triton"): [{"algorithm": "single", "ROWS": 4}, {"ROWS": 4, "num_stages": 3}],
    ("add_layer_norm_backward", "triton"): [{}, {"PIECE": 16, "BLOCK": 512}],
    ("rotary_embedding", "triton"): [{}, {"HEADS": 1, "FUSE": False}],
    ("rotary_embedding_backward", "triton"): [{}],
    ("cross_entropy", "triton"): [{"ROWS": 4}, {"algorithm": "two_pass", "num_stages": 3}],
    ("cross_entropy_backward", "triton"): [{"ROWS": 4}, {"algorithm": "two_pass"}],
    ("fused_linear_cross_entropy", "triton"): [{}, {"BLOCK_M": 16, "CHUNK": 256, "num_stages": 3}],
    ("top_k_top_p_sampling", "triton"): [{}, {"PIVOTS": 2}],
    ("embedding", "triton"): [{}, {"BLOCK": 1024}],
    ("embedding_backward", "triton"): [{}, {"ROWS": 64}],
    ("adamw", "triton"): [{}, {"FUSE": False, "BLOCK": 512}],
    ("prune_2to4", "triton"): [{}, {"BLOCK_N": 32, "BLOCK_K": 32}],
    ("adamw_8bit", "triton"): [{}, {"ROWS": 1}],
    ("galore_adamw", "triton"): [{}, {"BLOCK_M": 16, "BLOCK_K": 64, "num_stages": 1}],
    ("apollo_adamw", "triton"): [{}, {"BLOCK_M": 16, "BLOCK_K": 64, "num_stages": 1}],
    ("apollo_mini_adamw", "triton"): [{"BLOCK_M": 16}],
    ("causal_conv1d", "triton"): [{}, {"BLOCK_T": 1, "BLOCK_C": 64}],
    ("causal_conv1d_backward", "triton"): [{"BLOCK_C": 32}],
    ("linear_attention", "triton"): [{}, {"CHUNK": 16, "BLOCK_V": 32}],
    ("linear_attention_windows", "triton"): [{}, {"CHUNK": 16, "BLOCK_V": 16}],
    ("state_space", "triton"): [{}, {"CHUNK": 32, "BLOCK_V": 32}],
    ("gated_delta_rule", "triton"): [{}, {"CHUNK": 16, "BLOCK_V": 32}],
    ("attention", "triton"): [{"BLOCK_Q": 16}],
    **{
        (name, "triton"): [
            {},
            {
                "BLOCK_K": 128 if name in ("linear_ternary", "linear_trit_planes") else 32,
                "SPLIT": 4,
                "LATE_SCALE": False,
                "num_stages": 1,
            },
        ]
        for name in LINEARS
    },
    **{
        (name, "triton"): [{}, {"BLOCK_M": 32, "BLOCK_K": 32, "SPLIT": 4, "num_stages": 1}]
        for name in SPARSES
    },
    **{(name, "triton"): [{}, {"BLOCK_M": 16, "BLOCK_N": 128, "num_stages": 1}] for name in DYNAMICS},
    ("attention_block_sparse", "triton"): [{"BLOCK_Q": 16, "BLOCK_K": 32}, {"SKIP": False}],
    ("block_scores_int4", "triton"): [{}, {"BLOCK_Q": 128, "INTEGER": False}],
    ("block_top_k", "triton"): [{}, {"STEP": 4, "num_warps": 1}],
    ("attention_selected", "triton"): [{}, {"STEP": 2, "num_warps": 1, "num_stages": 1}],
    ("attention_selected_backward", "triton"): [{}, {"STEP": 1, "num_warps": 1, "num_stages": 1}],
    ("attention_window", "triton"): [{"BLOCK_Q": 16, "BLOCK_K": 32}, {"BLOCK_K": 32, "SKIP": False}],
    ("attention_varlen", "triton"): [
        {"BLOCK_Q": 16, "BLOCK_K": 32},
        {"BLOCK_K": 32, "SKIP": False, "FLAT": False},
    ],
    ("attention_latent", "triton"): [{"BLOCK_Q": 16, "BLOCK_K": 32}, {"BLOCK_K": 32}],
    ("attention_backward", "triton"): [{"STEP": 16}],
    ("attention_causal_backward", "triton"): [{}, {"BLOCK": 16, "STEP": 16, "SKIP": False}],
    ("attention_causal", "triton"): [{"BLOCK_Q": 16, "BLOCK_K": 32}, {"BLOCK_K": 32, "SKIP": False}],
}


@functools.cache
def kernel_of(name: str) -> Kernel:
    """As declared."""
    with composer(ROOT / "conf") as composed:
        return from_plain(composed.option("kernel", name), Kernel)


def oracle_of(kernel: Kernel) -> ReferenceOracle:
    """The reference, or autograd of the forward kernel's."""
    return ReferenceOracle(
        reference=find_function(kernel.reference),
        magnitude=find_magnitude(kernel.tolerance.magnitude),
        gradient_of=kernel.gradient_of,
        tolerance=kernel.tolerance,
        terms=lambda problem: evaluate_number(kernel.tolerance.reduction, problem.dimensions),
    )


def triton_launch(name: str, dtype: str, changes: dict):
    """The launch in the interpreter."""
    sizes = SHAPES.get(name, ROWS)[0]
    dimensions = dict(zip(kernel_of(name).dimensions, sizes, strict=True))
    job = declared_job(name, "h200", dtype, dimensions=dimensions, **changes)
    return backend("triton").load(job, NO_BINARY, ROOT, Path())


@functools.lru_cache(maxsize=4)
def cases_of(name: str, dtype: str):
    """Sizes, kind and tensors of each call and what is expected of it: the same for all variants."""
    kernel = kernel_of(name)
    oracle, generator = oracle_of(kernel), torch.Generator().manual_seed(1)
    shapes = SHAPES.get(name, ROWS)
    kinds = KINDS if kernel.special_values else KINDS[:-1]
    cases = []
    for sizes, kind in [(shapes[0], kind) for kind in kinds] + [(sizes, "normal") for sizes in shapes[1:]]:
        problem = problem_of(kernel, dtype, sizes)
        inputs = inputs_of(problem, kind, generator)
        cases.append((sizes, kind, problem, inputs, oracle.expected(problem, inputs)))
    return cases


def compare(name: str, launch, dtype: str):
    """The worst share of the bound over shapes, kinds of inputs and outputs, and where it was used."""
    worst = (0.0, "")
    for sizes, kind, problem, inputs, expectations in cases_of(name, dtype):
        outputs = {
            name: torch.full(problem.shape(name), 7.0, dtype=getattr(torch, problem.tensors[name].dtype))
            for name in problem.names("output")
        }
        launch({**inputs, **outputs})
        outputs = aligned(outputs, expectations)
        for output, expected in expectations.items():
            share = deviation(outputs[output], expected).share
            worst = max(worst, (share, f"{output} {sizes} {kind}"))
    return worst


def main(names):
    """The first Triton variant of the kernels in the interpreter in bfloat16, the others in float32."""
    warnings.simplefilter("ignore")  # NumPy's, about the NaN that we feed it
    torch.set_num_threads(1)
    for (name, implementation), variants in VARIANTS.items():
        if implementation != "triton" or name not in names:
            continue
        for dtype, changes in zip(
            itertools.chain(["bfloat16"], itertools.repeat("float32")), variants, strict=False
        ):
            share, where = compare(name, triton_launch(name, dtype, changes), dtype)
            print(json.dumps({"kernel": name, "dtype": dtype, "share": share, "where": where}))


def cpp_share(name: str, dtype: str, changes: dict):
    """The same for a compiled C++ variant."""
    with tempfile.TemporaryDirectory() as folder:
        sizes = SHAPES.get(name, ROWS)[0]
        return compare(name, launch_of(kernel_of(name), dtype, changes, Path(folder), sizes), dtype)


if __name__ == "__main__":
    main(sys.argv[1:])
