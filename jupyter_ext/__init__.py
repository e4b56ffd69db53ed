"""pyfunc_debug in Jupyter and IPython: magics, the live panel, and the front end's bundle in `static/`.

Importing it imports neither TensorFlow nor the widgets: those come with the first panel.
"""

from __future__ import annotations

from typing import Any

__all__ = ["load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext pyfunc_debug`. Loading twice does nothing."""
    from jupyter_ext.magics import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext pyfunc_debug`: stops a recording that is on, and leaves the shell as it was."""
    from jupyter_ext.magics import unload

    unload(shell)
