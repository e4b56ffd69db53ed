"""What threads die of is noted while it is watched, and the program's own hook is called and left as it was."""

from __future__ import annotations

import queue
import threading

import pytest

from pyfunc_debug.program.thread_deaths import ThreadDeaths


@pytest.fixture
def hook(monkeypatch):
    heard = []
    monkeypatch.setattr(threading, "excepthook", heard.append)
    return heard


def die(items):
    items.put(1)
    raise KeyError(9)


def dead(items):
    thread = threading.Thread(target=die, args=(items,), name="feeder")
    thread.start()
    thread.join()


def test_the_thread_that_used_an_object_is_known_by_what_is_waited_for(hook):
    items, others, deaths = queue.Queue(), queue.Queue(), ThreadDeaths()
    own = threading.excepthook
    deaths.watch()
    dead(items)
    deaths.rest()
    assert threading.excepthook is own
    assert len(hook) == 1
    found = deaths.of("an item of a queue", items)
    assert (found.thread, found.error, found.does) == ("feeder", "KeyError: 9", "items.put")
    assert found.at == die.__code__.co_firstlineno + 1
    assert found.line == die.__code__.co_firstlineno + 2
    assert deaths.of("room in a queue", items) is None
    assert deaths.of("an item of a queue", others) is None
    assert deaths.of("an item of a queue", None) is None


def test_a_hook_that_the_program_sets_meanwhile_stays(hook):
    items, deaths = queue.Queue(), ThreadDeaths()
    deaths.watch()
    ours = threading.excepthook
    threading.excepthook = lambda arguments: ours(arguments)
    theirs = threading.excepthook
    deaths.rest()
    assert threading.excepthook is theirs
    dead(items)
    assert len(hook) == 1
    assert deaths.of("an item of a queue", items) is None, "it rests"


def test_an_object_that_is_gone_is_not_kept(hook):
    items, deaths = queue.Queue(), ThreadDeaths()
    deaths.watch()
    dead(items)
    deaths.rest()
    hook.clear()
    del items
    assert all(use.thing() is None for use in deaths._uses)
