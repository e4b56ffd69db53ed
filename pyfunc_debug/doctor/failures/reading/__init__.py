"""What is read of a failure: the user's frames, source, symbols, dtypes; what only computes is evaluated."""
