"""A bell that wakes one thread. Waiting for it leaves no object: a program that counts its objects finds none of ours.

`threading.Event.wait` makes a lock and a tuple each time, which gc.get_objects() shows for as long as it waits.
"""

from __future__ import annotations

from _thread import allocate_lock

Pause = tuple[bool, float]


def pause(seconds: float) -> Pause:
    """How long `Bell.wait` waits. To be made once and used again: it is the call's own tuple of arguments."""
    return (True, seconds)


class Bell:
    """Rung by any thread, waited for by one. A ring that finds nobody waiting is heard by the next wait."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._lock.acquire()
        self._acquire = self._lock.acquire  # a bound method is an object, too

    def ring(self) -> None:
        """Wakes who waits."""
        try:
            self._lock.release()
        except RuntimeError:
            pass  # it was rung already

    def is_rung(self) -> bool:
        """Whether the next wait ends at once."""
        return not self._lock.locked()

    def wait(self, how_long: Pause) -> bool:
        """Waits for a ring.

        Returns:
          Whether it was rung.
        """
        return self._acquire(*how_long)
