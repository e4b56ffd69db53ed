"""Why a program failed: the traps of Python in TensorFlow graphs, recognised by the exception. One module a cause.

An explanation is made in the process that failed, from the live exception; the recording keeps it, and the doctor says
the same later from there. A failure with another cause gets none. All of them (`causes`) are imported as a program
fails: no other has to wait for that.
"""
