"""Kernels that people use, wrapped as candidates: is what is right accepted?"""
