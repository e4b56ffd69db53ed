"""The doctor's failing programs in the other shapes in which users write the same: what is told must not hang on them.

`python -m tests.doctor.reshaped SHAPE [...]` rewrites each program of tests/doctor/failing (`shapes.py`: all of it in a
function, its functions in a module, its arrays written into the call, other names, ...), runs it with the recorder
and does what is printed, up to three times, as tests/doctor/test_failures.py does. It prints those of which less is
told than of the program as it is, and a count of each verdict.
"""
