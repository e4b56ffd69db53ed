"""`python -m pyfunc_debug` is `pyfunc-debug`."""

import sys

from pyfunc_debug.cli import main

if __name__ == "__main__":
    sys.exit(main())
