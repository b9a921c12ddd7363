"""The artifact store: content-addressed files, written so that a killed process cannot damage them.

Doors: archive, atomic, attempt_history, current_provenance, entries, integrity, local_cache, outputs,
privacy, run_lock, shared_store, stored_sources, submission_files, temporary
"""
