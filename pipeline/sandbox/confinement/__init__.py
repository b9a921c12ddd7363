"""Takes rights away from a process that runs a candidate: `confine` calls one module per kernel mechanism."""
