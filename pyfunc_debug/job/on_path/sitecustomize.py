"""Python runs this as it starts in each process of a recorded job: PYTHONPATH leads here (job/children.py)."""

import importlib.machinery
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [one for one in sys.path if os.path.abspath(one) != _HERE or not one]
_spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
if _spec is not None and _spec.loader is not None:  # the one that runs without us
    import importlib.util

    _module = importlib.util.module_from_spec(_spec)
    sys.modules["sitecustomize"] = _module
    _spec.loader.exec_module(_module)

try:
    from pyfunc_debug.job.waiter import wait
except ImportError:  # another environment's Python: it is not ours to record
    pass
else:
    wait()
