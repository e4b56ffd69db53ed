"""Room for files while a program is explained that has opened all that it may."""

import resource

from pyfunc_debug.program.file_limit import room_for_files


def test_there_is_room_only_where_files_ran_out():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with room_for_files("ValueError: 24"):
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
    lower = (before[0] - 100, before[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, lower)
    try:
        with room_for_files("OSError: [Errno 24] Too many open files: 'x'"):
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > lower[0]
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == lower
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
