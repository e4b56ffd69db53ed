"""`ide()`: line breakpoints of VS Code, PyCharm and other IDEs stop in bodies, coverage sees them; no recording."""

from __future__ import annotations

from pyfunc_debug.switchboard import board


def ide(on: bool = True) -> None:
    """Makes an IDE's own line breakpoints stop in bodies, on TensorFlow's threads too; the IDE may attach later.

    Breakpoints need it on Python 3.10 and 3.11; from 3.12 on they stop without it. coverage.py (`coverage run`,
    pytest-cov) counts the lines of bodies with it, on every Python. While something is recorded, or there is a
    `break_on`, both work anyway. `PYFUNC_DEBUG=ide` in the environment does the same where pyfunc_debug is
    imported, and `pyfunc-debug ide train.py` for a program that does not know of it. See docs/ides.md.

    Args:
      on: False to put TensorFlow back as it was.

    Raises:
      UnsupportedTensorFlowError: this TensorFlow is too different.

    Example:
      pfd.ide()
      pfd.ide(False)
    """
    board.help_ide(on)
