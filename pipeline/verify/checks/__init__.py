"""The gate: what a variant must survive before anybody measures it.

A *case* (`cases`) is one shape, layout, distribution (`inputs`) and seed, with its expected values
(`reference`, `tolerance`). A *trial* (`trial`) calls the variant on each case in a child process
(`candidate`) whose buffers (`buffers`) the judge inspects from outside. Each *check* (`registry`) looks
at what one call left behind; the *gate* (`gate`) passes a variant only if every check ran and said so.
"""
