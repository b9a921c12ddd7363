"""Runs on a cluster: what a site declares, where its jobs go, and what its nodes are."""
