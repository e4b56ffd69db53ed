"""A body in a file of its own: what coverage counts of it, a body has run."""

import threading

SEEN = set()


def body(v):
    SEEN.add(threading.get_native_id())
    return v + 1
