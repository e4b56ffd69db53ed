"""Line breakpoints of an IDE in bodies, and lines for coverage.py: one attribute, and no node is changed.

debugpy traces threads that Python makes. TensorFlow's are made in C++, and begin each call without a trace function
(sys.settrace); on Python 3.12 and newer debugpy uses sys.monitoring, which covers every thread. coverage.py does so
from Python 3.14 on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyfunc_debug.interception import names
from pyfunc_debug.interception.calls import drop_our_frame
from pyfunc_debug.interception.patches import Patch


def ide_patches(attach: Callable[[], object]) -> list[Patch]:
    """What to replace so that `attach` runs on the thread of each call, before its body."""

    def replacement(original: Any) -> Any:
        def __call__(*args: Any) -> Any:  # noqa: N807 - it replaces this method
            attach()
            try:
                return original(*args)
            except BaseException as error:
                drop_our_frame(error)
                raise

        return __call__

    return [Patch(names.load().registry_type, "__call__", replacement)]
