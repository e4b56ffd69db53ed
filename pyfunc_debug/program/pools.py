"""TensorFlow's thread pools: to which one a thread belongs, and how many threads it has, as far as that is known.

Measured on TensorFlow 2.21: graphs run their bodies on the inter-op pool, whose threads are named `tf_Compute`, so that
they can be counted; each tf.data iterator has a pool of its own, whose threads have the program's name, with as many
threads as there are CPUs unless `private_threadpool_size` says otherwise. The defaults are those of
tensorflow/core/common_runtime/process_util.cc.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Collection
from typing import NamedTuple

from pyfunc_debug.program.threads import made_by_cpp

_INTER_OP = "tf_Compute"


class Pool(NamedTuple):
    """A pool, in words.

    Attributes:
      name: What it is called.
      threads: How many threads it has, or would have by default where that is not known.
      source: Where that number is from; empty where the number is only the default.
      victims: What stands still when all of them are taken.
      private: Whether it is one pipeline's.
    """

    name: str
    threads: int
    source: str
    victims: str
    private: bool = False


class Iterated(NamedTuple):
    """A loop over a Dataset.

    Attributes:
      place: Where it is, as `train.py:12`; empty where that is not known.
      pool: Its private_threadpool_size; None where the program did not set it.
    """

    place: str
    pool: int | None


def pool_of(native_id: int, loops: Collection[Iterated] = ()) -> Pool | None:
    """The pool of a thread of TensorFlow's that runs a body now.

    Args:
      native_id: The thread.
      loops: Those over data that its body makes, as far as they are known.

    Returns:
      None for a thread that Python made, or without TensorFlow.
    """
    if native_id == os.getpid():  # the main thread, also of a forked process: Python 3.11 gives the id of before there
        return None
    if any(thread.native_id == native_id and not made_by_cpp(thread) for thread in threading.enumerate()):
        return None
    if _thread_name(native_id) in (_INTER_OP, None):
        return _inter_op()
    sizes = {loop.pool for loop in loops}
    places = sorted({loop.place for loop in loops if loop.place})
    name = f"the tf.data pool of {places[0]}" if len(places) == 1 else "a tf.data pipeline's pool"
    if len(sizes) != 1:  # made inside a graph, or before anybody looked; or with several settings
        return Pool(name, cores(), "", "the pipeline", private=True)
    (size,) = sizes
    source = "the default, one a CPU" if size is None else "private_threadpool_size"
    return Pool(name, size or cores(), source, "the pipeline", private=True)


def _thread_name(native_id: int) -> str | None:
    """The operating system's name of a thread; None where the system does not tell."""
    try:
        with open(f"/proc/self/task/{native_id}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None


def _inter_op() -> Pool | None:
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None:
        return None
    wanted, source = int(tensorflow.config.threading.get_inter_op_parallelism_threads()), "tf.config.threading"
    environment = os.environ.get("TF_NUM_INTEROP_THREADS", "")
    if wanted <= 0 and environment.isdecimal():
        wanted, source = int(environment), "TF_NUM_INTEROP_THREADS"
    if wanted <= 0:
        wanted, source = cores(), ""
    counted = _counted(_INTER_OP)
    if counted and (counted < wanted or not source):
        source = "counted"
    # More than one pool has would be several pools: a v1 Session has its own.
    return Pool("TensorFlow's inter-op pool", min(counted or wanted, wanted), source, "other graphs")


def inter_op_threads() -> int:
    """How many threads of this process run TensorFlow's operations; 0 before the first, or where nobody can count."""
    return _counted(_INTER_OP)


def _counted(name: str) -> int:
    """How many threads of this process have this name; 0 where the system does not tell."""
    found = 0
    with contextlib.suppress(OSError):
        found = sum(_thread_name(int(one)) == name for one in os.listdir("/proc/self/task"))
    return found


def cores() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
