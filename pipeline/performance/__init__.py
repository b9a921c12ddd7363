"""What bounds a kernel: roofline, analytic bound, diagnosis, and the metrics of a result.

Doors: bound, diagnosis, feedback, metrics, quantities, roofline
"""
