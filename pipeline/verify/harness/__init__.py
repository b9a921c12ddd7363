"""Runs a candidate in a process of its own and records what it does.

Two conventions (`conventions`): a declared kernel writes into outputs that are given to it; a model, which is
a `ModelNew` in the format of KernelBench, returns its own. Session, process, messages and observers are the
same for both. Cases and the order of calls: `kernel_*` for declared kernels, `model_*` for models.
"""
