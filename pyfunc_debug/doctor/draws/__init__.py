"""Random numbers that are drawn in Python or once, at trace, and the same in TensorFlow's ops."""
