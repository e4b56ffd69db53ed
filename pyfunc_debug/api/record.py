"""`record()`: what may be asked of a recording. Nothing of TensorFlow is imported before the program imports it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyfunc_debug.api.live import LiveRecording
from pyfunc_debug.api.meta import Options
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.recorder import parse_budget
from pyfunc_debug.recorder.sampling import parse_sampling
from pyfunc_debug.values import Policies

_GRADIENTS = ("stock", "exact")


def record(
    path: str | os.PathLike[str] | None = None, *, values: str | Mapping[str, str] = "summary", nodes: str = "*",
    gradients: str = "stock", gil: bool = True, budget: str | int = "256MB", overwrite: bool = False,
    lines: bool | str = False, hang_after: float | None = 30.0, order: int = 1, sample: str | None = None,
    sample_when: str | None = None, folder_budget: str | int | None = None, random_state: bool = False,
) -> LiveRecording:  # fmt: skip
    """Records every call of every py_function while a `with` block runs, or between `start()` and `stop()`.

    Args:
      path: The .pfrec file to write; None for a temporary file that is deleted with the returned object.
      values: What to keep of inputs and outputs: "none", "shape", "summary", "sample" or "full"; or a mapping from node
        globs to these, with "*" for all others.
      nodes: Glob over body names, op names and tokens: which nodes' calls are recorded.
      gradients: "stock": exactly TensorFlow's gradients, right or wrong; where one is computed from another call's
        tape, a finding shows it and the true value. "exact": each call's own gradient (see `exact_gradients`).
      gil: Whether to measure waiting for the GIL, where that can be measured.
      budget: Largest size of the file, as "256MB" or a number of bytes. Beyond it values are dropped first, then calls
        are counted but not stored, but for failures, what findings name, each node's first calls, the slowest and the
        newest; the ledger says so.
      overwrite: Whether an older recording at `path` may be replaced.
      lines: Whether to count how often each line ran at trace and in bodies, and to keep what they print. "graph": also
        how often the graph ran each line, by TensorFlow's profiler, which keeps every op in memory meanwhile.
      hang_after: Seconds after which a call in which nothing moves is reported on stderr and as a finding, with what it
        waits for. None: never.
      sample: Which calls of each node are stored: "1/100", or "10+1/100" for the first ten and then every hundredth.
        The others are counted and timed; those that fail, give a NaN or are among the slowest are stored all the same.
        The GIL is not measured then.
      sample_when: Calls are stored only while this holds: "step % 1000 == 0". `step` is how often the tf.function that
        Python started last has been started, 0 before the first.
      folder_budget: Largest size of all recordings in the folder together, of a job's processes: each looks at the
        folder once a second and takes its part of what is left, and never more than a quarter of all.
      random_state: Whether to record what Python's `random` and NumPy's global generator were as each body began, for
        `call.replay(random_state=True)`.
      order: 2 with gradients="exact" for second derivatives as well (see `exact_gradients`).

    Returns:
      The recording; it can be read at any time.

    Raises:
      BadOptionError: an option makes no sense; on start: there is a file already.
      CannotWriteError: the file cannot be written there (on start).
      RecordingBusyError: this process is recording already (on start).
      UnsupportedTensorFlowError: this TensorFlow is too different (on start).

    Example:
      with pfd.record("train.pfrec") as recording:
          train_step(batch)
      print(recording.ledger())
    """
    if gradients not in _GRADIENTS:
        raise BadOptionError(f"gradients={gradients!r} is not one of {', '.join(_GRADIENTS)}")
    if order not in (1, 2) or (order == 2 and gradients != "exact"):
        raise BadOptionError(f"order={order!r}: 1, or 2 with gradients='exact'")
    if hang_after is not None and not hang_after > 0:
        raise BadOptionError(f"hang_after={hang_after!r} is not a number of seconds: give one above 0, or None")
    if lines not in (True, False, "graph"):
        raise BadOptionError(f"lines={lines!r} is not one of True, False, 'graph'")
    sampling = parse_sampling(sample, sample_when)
    kept, room = Policies(values, nodes), parse_budget(budget, folder_budget)
    return LiveRecording(
        path,
        Options(
            kept, gradients, gil and sampling is None, room, overwrite, lines, hang_after, order, sampling, random_state
        ),
    )
