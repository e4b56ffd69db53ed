"""What calls do with the GIL: probes of three grades, and the arithmetic on their samples.

    probe = gil.open_probe("auto")
    probe.start()
    rows = probe.rows(calls, body)                  # now and then; calls: (id, threading.get_ident(), start_ns, end_ns)
    probe.stop(); rows += probe.rows(calls, final=True)

Nothing has to happen in a call's wrapper except noting these four numbers.
"""

from pyfunc_debug.gil.grade import RESOLUTION_NS, WORDS, Probe, has_gil, open_probe
from pyfunc_debug.gil.join import join
from pyfunc_debug.gil.samples import CallTimes, Grade, Samples
from pyfunc_debug.gil.whatif import Ceiling, Stage, ceiling

__all__ = [
    "RESOLUTION_NS",
    "WORDS",
    "CallTimes",
    "Ceiling",
    "Grade",
    "Probe",
    "Samples",
    "Stage",
    "ceiling",
    "has_gil",
    "join",
    "open_probe",
]
