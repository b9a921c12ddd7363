"""What bounds a kernel: roofline, analytic bound, diagnosis, and the metrics of a result.

Doors: bound_error, diagnosis, feedback, metrics, quantities, roofline, time_bound
"""
