"""The experiments of the paper, done again: datasets, runs, tables."""
