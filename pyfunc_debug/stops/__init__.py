"""Breakpoints on nodes: which calls stop, who may prompt, and what the prompt offers.

Knows nothing of TensorFlow's internals, of the recorder or of Jupyter: `pyfunc_debug.switchboard` plugs it into
interception, fronts (a terminal, a notebook) plug themselves into the broker.
"""

from pyfunc_debug.stops.broker import Broker
from pyfunc_debug.stops.environment import Environment
from pyfunc_debug.stops.observer import StopObserver
from pyfunc_debug.stops.rules import Breakpoint, Rules
from pyfunc_debug.stops.stop import Abort, Front, Stop

__all__ = ["Abort", "Breakpoint", "Broker", "Environment", "Front", "Rules", "Stop", "StopObserver"]
