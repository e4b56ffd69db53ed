"""TensorFlow's thread pools: to which one a thread belongs, and how many threads it has.

Measured on TensorFlow 2.21: graphs run their bodies on the inter-op pool, whose threads are named `tf_Compute`; each
tf.data iterator has a pool of its own, with as many threads as there are CPUs unless `private_threadpool_size` says
otherwise. The defaults are those of tensorflow/core/common_runtime/process_util.cc.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import NamedTuple

from pyfunc_debug.program.threads import made_by_cpp

_INTER_OP = "tf_Compute"


class Pool(NamedTuple):
    """A pool, in words.

    Attributes:
      name: What it is called.
      threads: How many threads it has.
      victims: What stands still when all of them are taken.
      private: Whether it is one pipeline's.
    """

    name: str
    threads: int
    victims: str
    private: bool = False


def pool_of(native_id: int) -> Pool | None:
    """The pool of a thread of TensorFlow's that runs now; None for a thread that Python made, or without TensorFlow."""
    if any(thread.native_id == native_id and not made_by_cpp(thread) for thread in threading.enumerate()):
        return None
    if _thread_name(native_id) in (_INTER_OP, None):
        size = _inter_op_threads()
        return Pool("TensorFlow's inter-op pool", size, "other graphs") if size else None
    return Pool("a tf.data pipeline's pool (by default)", cores(), "the pipeline", private=True)


def _thread_name(native_id: int) -> str | None:
    """The operating system's name of a thread; None where the system does not tell."""
    try:
        with open(f"/proc/self/task/{native_id}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None


def _inter_op_threads() -> int | None:
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None:
        return None
    set_ = int(tensorflow.config.threading.get_inter_op_parallelism_threads())
    environment = os.environ.get("TF_NUM_INTEROP_THREADS", "")
    if set_ > 0:
        return set_
    return int(environment) if environment.isdecimal() and int(environment) > 0 else cores()


def cores() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
