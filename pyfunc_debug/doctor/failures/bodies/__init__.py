"""Causes in what a body is given and returns."""
