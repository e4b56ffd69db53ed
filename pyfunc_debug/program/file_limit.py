"""Room for a few more open files, while a program is explained that has opened all that it may.

Reading a module, or the program's text, opens a file. The soft limit is raised within the hard one, and set back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

_SAID = "[Errno 24]"
_ROOM = 64


@contextlib.contextmanager
def room_for_files(text: str) -> Iterator[None]:
    """Some more files while the block runs, if a failure's text says that there are too many.

    Args:
      text: The text of an exception.
    """
    if _SAID not in text:
        yield
        return
    try:
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = hard if hard == resource.RLIM_INFINITY or hard >= soft + _ROOM else soft
        if soft != resource.RLIM_INFINITY and most != soft:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft + _ROOM, hard))
    except (ImportError, ValueError, OSError):  # Windows has no such limit; a container may not let it be set
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
