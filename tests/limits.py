"""Limits of all tests, and what fresh processes are spared."""

import os
from pathlib import Path

HANG_S = 600.0
"""Nothing that works takes so long, on however busy a machine; what hangs ends then."""

LIGHT = os.pathsep.join(filter(None, (str(Path(__file__).parent / "light"), os.environ.get("PYTHONPATH"))))
"""With this PYTHONPATH `import tensorflow` takes a quarter less CPU: no matplotlib and no pandas, for Keras."""
