"""What bounds a kernel: roofline, analytic bound, diagnosis, the metrics of a result, scores of submissions.

Doors: bound_error, diagnosis, feedback, geometric_mean, metrics, quantities, roofline, submission_scores,
    time_bound
"""
