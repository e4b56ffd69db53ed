"""Nodes, tf.functions, graph traces and runs: what TensorFlow builds, and why it builds it again."""
