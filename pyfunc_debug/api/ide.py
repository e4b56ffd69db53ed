"""`ide()`: line breakpoints of VS Code, PyCharm and other IDEs stop in bodies, without a recording."""

from __future__ import annotations

from pyfunc_debug.switchboard import board


def ide(on: bool = True) -> None:
    """Makes an IDE's own line breakpoints stop in bodies, on TensorFlow's threads too; the IDE may attach later.

    For Python 3.10 and 3.11; from 3.12 on they stop without it, and it does nothing. While something is recorded, or
    there is a `break_on`, they stop anyway. `PYFUNC_DEBUG=ide` in the environment does the same where pyfunc_debug is
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
