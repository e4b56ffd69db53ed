"""TensorFlow's profiler: a session of it, and readers of the XSpace and its planes that it writes."""
