"""Generated programs whose truth is known, and what we say of them.

The suite tries a few, the same ones each time; `PYFUNC_DEBUG_TEST_SEED=NUMBER` in the environment chooses others.
`python -m tests.truth.NAME` tries more, others each time it runs.
"""
