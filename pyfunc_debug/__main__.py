"""`python -m pyfunc_debug` is `pyfunc-debug`."""

import os
import sys

if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):  # `code.py` in the user's folder is not what we import
        sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

    from pyfunc_debug.cli import main

    sys.exit(main())
