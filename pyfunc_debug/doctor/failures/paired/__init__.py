"""The user's code run beside the same code in TensorFlow's ops, value by value."""
