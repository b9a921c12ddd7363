"""The least time of a variant's call, term by term: an estimate, labelled so everywhere."""
