"""Stands before pandas on the path of fresh processes: see LIGHT in tests/limits.py."""

raise ImportError("left out: Keras imports it with TensorFlow where it is installed")
