"""Problems and candidates of other benchmarks, in their own folders."""
