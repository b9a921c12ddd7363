"""The processes that host what is timed, and checks of their clocks."""
