"""Causes in what is traced: symbolic values, AutoGraph, variables, leaked tensors, dtypes."""
