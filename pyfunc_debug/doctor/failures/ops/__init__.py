"""Python, NumPy, SciPy and OpenCV written in TensorFlow's ops."""
