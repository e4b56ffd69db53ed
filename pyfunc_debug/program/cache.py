"""Where this package keeps what it can make again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The package's folder in the user's cache (XDG); it need not exist."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(cache) if os.path.isabs(cache) else Path(os.path.expanduser("~"), ".cache")
    return folder / "pyfunc_debug"
