"""Files of other tools: formats that are read and written, replaying of recorded results, exported data sets,
folders of other benchmarks that `kernelmill judge` takes as they are.

Doors: dataset, formats, problem_sets, replay
"""
