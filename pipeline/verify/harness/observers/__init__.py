"""What is observed in a candidate's process: kernels, operators, native code, memory and the flow of data."""
