"""Small files of each kind, made up as their tools write them."""

import gzip
import json
from pathlib import Path
from typing import Any

T1: dict[str, Any] = {
    "General": {"BenchmarkName": "vector_add", "OutputFormat": "JSON"},
    "ConfigurationSpace": {
        "TuningParameters": [
            {"Name": "block", "Type": "int", "Values": "[2**i for i in range(5, 8)]", "Default": 64},
            {"Name": "unroll", "Type": "uint", "Values": "[1] + list(range(2, 5, 2))", "Default": [2]},
            {"Name": "algorithm", "Type": "string", "Values": "['a', 'b']", "Default": "c"},
            {"Name": "ratio", "Type": "float", "Values": "[0.5, 1]"},
            {"Name": "padded", "Type": "bool", "Values": "(True, False)", "Default": False},
        ],
        "Conditions": [
            {"Expression": "block * unroll <= MAX_THREADS", "Parameters": ["block", "unroll"]},
            {"Expression": "lambda p: not p['padded'] or p['algorithm'] == 'b'", "Parameters": []},
        ],
    },
    "BenchmarkConfig": {"MAX_THREADS": 256, "notes": ["x"]},
    "KernelSpecification": {
        "Language": "CUDA",
        "KernelName": "vector_add",
        "ProblemSize": [1024, 2],
        "Device": {"Name": "A100"},
        "Arguments": [
            {"Name": "a", "Type": "float", "MemoryType": "Vector", "AccessType": "ReadOnly", "Size": 10},
            {"Name": "n", "Type": "int32", "MemoryType": "Scalar", "Size": "max(block)"},
        ],
    },
}

ENTRIES: dict[str, Any] = {
    "64,True,x": {
        **{"block": 64, "flag": True, "mode": "x", "time": 2.0, "times": [3.0, 1.0, 1.5]},
        **{"compile_time": 100.0, "verification_time": 0, "benchmark_time": 10.0, "strategy_time": 1},
        **{"framework_time": 2.0, "timestamp": "2024-01-01", "GFLOP/s": 7.5, "nvml_energy": 0.25},
    },
    "64,1,x": {"block": 64, "flag": 1, "mode": "x", "time": "CompilationFailedConfig", "compile_time": 50.0},
    "64,2,x": {"block": 64, "flag": 2, "mode": "x", "time": "RuntimeFailedConfig", "times": [1.0]},
    "32,True,y": {"block": 32, "flag": True, "mode": "y", "time": "InvalidConfig"},
    "32,1,y": {"block": 32, "flag": 1, "mode": "y", "time": 1e20},
    "32,2,y": {"block": 32, "flag": 2, "mode": "y", "__error__": "CompilationFailedConfig"},
}
CACHE: dict[str, Any] = {
    "device_name": "Some GPU",
    "kernel_name": "vector_add",
    "problem_size": [1024, 2],
    "tune_params_keys": ["block", "flag", "mode"],
    "tune_params": {"block": [32, 64], "flag": [1, True, 2], "mode": ["x", "y"]},
    "objective": "time",
    "cache": ENTRIES,
}


def measured(value: Any, **changes: Any) -> dict[str, Any]:
    """One result of T4."""
    entry = {
        "timestamp": "2024-01-01",
        "configuration": {"block": 64, "mode": "x"},
        "times": {"compilation": 100.0, "framework": 1.0, "validation": 0, "runtimes": [3.0, 1.0, 1.5]},
        "invalidity": "correct",
        "correctness": 1,
        "measurements": [
            {"name": "time", "value": value, "unit": ""},
            {"name": "GFLOP/s", "value": 7.5, "unit": ""},
            {"name": "energy", "value": 0.25, "unit": "J"},
        ],
        "objectives": ["time"],
    }
    return {**entry, **changes}


T4: dict[str, Any] = {
    "schema_version": "1.0.0",
    "metadata": {"timeunit": "miliseconds"},
    "results": [
        measured(2.0),
        measured("RuntimeFailedConfig", invalidity="runtime", configuration={"block": 32, "mode": "x"}),
        measured("x", invalidity="timeout", configuration={"block": 32, "mode": "y"}),
    ],
}


def written(folder: Path, content: Any, name: str = "file.json") -> Path:
    """The content as a file: JSON of anything but text; gzip where the name says so."""
    path = folder / name
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path
