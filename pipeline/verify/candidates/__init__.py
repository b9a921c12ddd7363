"""Problems and candidates: folders in the layout of KernelBench, problems as Python, verdicts as a table."""
