"""Small programs that fail, after what users of TensorFlow report: `*.txt`, read by tests/doctor/test_failures.py.

A program begins with `=== name where-it-comes-from` and ends with `--- rule` (the printed text is applied to it, and it
must run), `--- rule words` (there is advice and nothing to paste; words in quotes are printed), `--- untold` (another
cause: nothing is said) or `--- runs` (TensorFlow does not refuse it).
"""
