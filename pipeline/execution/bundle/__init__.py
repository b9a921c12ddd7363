"""Bundles: experiments packed here, run on a machine without network, and brought home as one file."""
