"""Causes in tf.data: elements, batches, generators, iterators."""
