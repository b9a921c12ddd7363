"""Mutants: small mistakes put into right kernels, to see whether the gate finds them.

An *operator* (`python_operators`, `cpp_operators`) finds the places of a source where one kind of mistake can
be made, one line each. `mutants` chooses among them; a mutant is compiled by the kernel's own backend
(`compiling`) and judged by the same gate as every other candidate (`trying`).
"""
