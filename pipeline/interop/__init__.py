"""Files of other tools: formats that are read and written, replaying of recorded results, exported data sets.

Doors: dataset, formats, replay
"""
