"""Everything else that runs in a candidate's process: loading, calling, encoding results, absent devices."""
