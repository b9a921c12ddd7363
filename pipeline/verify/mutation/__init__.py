"""Mutation testing of the checks: small mistakes are put into right kernels and must be found."""
