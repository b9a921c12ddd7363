"""The code in a candidate's process that loads and calls it: arguments, weights, builds, absent devices."""
