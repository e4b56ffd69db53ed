"""Facts of the running Python program: frames, error texts, Python state, threads, pools, imports."""
