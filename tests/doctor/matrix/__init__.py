"""Matrices: many small programs of what users write, each run, mended by what is printed, and compared with the truth.

`python -m tests.doctor.matrix NAME` runs every program of a matrix with the recorder, does what the explanation or the
finding says (up to three times), and compares `result` and `state` of the program that then runs, with their dtypes and
shapes, with those of the same program run eagerly. The matrices are the text files here: their pieces begin with
`=== name`, and a piece whose eager run is not the truth has it behind `--- truth`, as a program of its own. Where a
matrix has places (`places.py`), a piece is a function `f(x)` that is put into each of them.
"""
