"""The panel in JupyterLab, in a real browser: while a cell runs, afterwards, without a kernel.

That Notebook 7 shows it too is in test_from_call.py and test_keys.py.
"""

# ruff: noqa: E501 - JavaScript is long lines
from __future__ import annotations

import json

import pytest

from tests.jupyter_ext.lab import Notebook, Server, browser, shoot, write_notebook
from tests.jupyter_ext.program import SETUP, traced

SCROLL = "() => document.querySelector('.pfd').scrollIntoView({ block: 'start' })"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("notebooks")) as server:
        yield server


@pytest.fixture(scope="module")
def opened(server):
    """One page with one kernel for the tests that leave both."""
    write_notebook(own_folder(server, "shared") / "a.ipynb", ["1"])
    with browser((1500, 900)) as page:
        notebook = Notebook(page, server, "shared/a.ipynb")
        notebook.wait_kernel()
        yield notebook


WAITED = """import sqlite3
from pathlib import Path
import pyfunc_debug as pfd
from tests.report import recordings
with sqlite3.connect(recordings.small(Path("waited.pfrec"))) as db:
    db.execute('UPDATE gil SET blame = ?', ('[["other Python threads: IOPub", 900000]]',))
db.close()
_pyfunc = pfd.open("waited.pfrec")
%pyfunc_show"""


def own_folder(server, name):
    """A folder for one notebook and what it writes."""
    folder = server.folder / name
    folder.mkdir()
    return folder


def test_a_traced_cell_from_its_first_call_to_a_saved_notebook_without_kernel(server):
    folder = own_folder(server, "traced")
    until = "\nimport os\nwhile not os.path.exists('enough'):\n    time.sleep(.05)"
    cell = traced(40, 0.02).replace("\nround(", f"{until}\nround(")
    write_notebook(folder / "a.ipynb", [SETUP, cell, "1 + 1"])
    with browser((1500, 1000)) as page:
        notebook = Notebook(page, server, "traced/a.ipynb")
        notebook.wait_kernel()
        notebook.run(0)
        notebook.wait(0)
        notebook.run(1)

        # The table lives while the cell runs.
        page.wait_for_selector('.pfd .ledger tr[data-key^="n"] .c-calls')
        cells = "[...document.querySelectorAll('.pfd .ledger td.c-calls')]"
        count = f"() => {cells}.reduce((sum, cell) => sum + Number(cell.textContent.replace(/,/g, '')), 0)"
        page.wait_for_function(f"() => ({count})() > 100")
        assert notebook.running(1)
        assert "recording" in page.locator(".pfd .state").inner_text()

        # A click shows a call, while the cell runs.
        page.evaluate(SCROLL)
        page.locator(".pfd .calls tr[data-call]").nth(2).click()
        page.wait_for_selector(".pfd .d-call .vals")
        assert notebook.running(1)
        page.wait_for_selector(".pfd .d-call figure canvas")
        call = page.locator(".pfd .d-call .ttl").inner_text()
        page.wait_for_function(f"() => ({count})() > 350")
        assert page.locator(".pfd .d-call .ttl").inner_text() == call, "live data never move the selection"
        notebook.shot("lab-live-light.png")

        # The notebook's keys stay the notebook's, the panel's the panel's: `d d` deletes a cell in command mode.
        page.keyboard.press("d")
        page.keyboard.press("d")
        page.keyboard.press("a")
        assert page.evaluate("() => window.jupyterapp.shell.currentWidget.content.widgets.length") == 3

        notebook.theme("JupyterLab Dark")
        page.wait_for_selector('.pfd[data-theme="dark"]')
        page.wait_for_timeout(400)
        notebook.shot("lab-live-dark.png")
        notebook.theme("JupyterLab Light")
        page.wait_for_selector('.pfd[data-theme="light"]')

        # The picture is held, not the program.
        page.locator(".pfd .hold").click()
        page.wait_for_function(
            "() => document.querySelector('.pfd .msg').textContent.startsWith('this picture stands still')"
        )
        page.locator(".pfd .hold").click()

        (folder / "enough").write_text("")
        notebook.wait(1)
        page.wait_for_function("() => document.querySelector('.pfd .state').textContent.startsWith('recorded')")
        page.wait_for_function("() => document.querySelector('.pfd [data-tab=findings] .n').textContent !== '–'")
        for tab in ("source", "traces", "gil", "stop", "findings"):
            page.locator(f".pfd [data-tab={tab}]").click()
            page.wait_for_function(
                "(t) => !document.querySelector(`.pfd .d-${t}`).hidden && document.querySelector(`.pfd .d-${t}`).childElementCount",
                arg=tab,
            )
            notebook.shot(f"lab-{tab}.png")
        assert page.locator(".pfd .d-findings li").count() >= 1

        # Not seen twice: the static form is in the notebook, and hidden beside the live panel.
        static = page.locator(".pfd-static")
        assert static.count() == 1
        assert not static.is_visible()
        kinds = [sorted(output.get("data", {})) for output in notebook.outputs(1)]
        assert ["text/html", "text/plain"] in kinds
        assert kinds[1] == ["text/plain"], "the cell's own value"

        # Written beside the notebook, from the panel.
        page.locator(".pfd .top button", has_text="Report").click()
        page.wait_for_function("() => document.querySelector('.pfd .msg').textContent.startsWith('written')")
        assert (folder / "train.html").stat().st_size > 50_000

        # The kernel goes: what was loaded stays.
        page.locator(".pfd [data-tab=call]").click()
        page.evaluate("() => window.jupyterapp.shell.currentWidget.context.sessionContext.shutdown()")
        page.wait_for_selector('.pfd[data-link="lost"]')
        assert "stays readable" in page.locator(".pfd .msg").inner_text()
        assert page.locator(".pfd .ledger tbody tr").count() > 3
        notebook.save()
        assert page.errors == []

        # Reopened without a kernel: the static form is what is seen.
        page.goto("about:blank")
        content = json.loads((folder / "a.ipynb").read_text())
        content["metadata"]["kernelspec"]["name"] = "no such kernel"
        (folder / "b.ipynb").write_text(json.dumps(content))
        Notebook(page, server, "traced/b.ipynb")
        page.wait_for_selector(".pfd-static")
        assert page.locator(".pfd-static").is_visible()
        assert "log_huber" in page.locator(".pfd-static").inner_text()
        shoot(page, "lab-reopened.png")


def test_show_opens_at_a_call_and_old_panels_stay_readable(opened):
    notebook, page = opened, opened.page
    notebook.cells([SETUP, traced(10, 0), "%pyfunc_show 5", "%pyfunc_show augment", WAITED])
    for cell in range(4):
        notebook.run(cell)
        notebook.wait(cell)
    page.wait_for_function("() => document.querySelectorAll('.pfd').length === 3")
    page.wait_for_function(
        "() => document.querySelectorAll('.pfd')[1].querySelector('.d-call .ttl')?.textContent.includes('#5')"
    )
    page.wait_for_function(
        "() => document.querySelectorAll('.pfd')[2].querySelector('.ledger tr.sel')?.textContent.includes('augment')"
    )
    first = page.locator(".pfd").nth(0)
    first.locator(".calls tr[data-call]").first.click()
    page.wait_for_function("() => document.querySelectorAll('.pfd')[0].querySelector('.d-call .vals')")
    # Running the cell again replaces its file: the panels of the old recording say so instead of mixing.
    notebook.run(1)
    notebook.wait(1)
    # Which calls follow each other there is up to the threads; one that is shown already is not asked for again.
    page.locator(".pfd").nth(1).locator('.calls tr[data-call]:not([data-call="5"])').nth(2).click()
    page.wait_for_function("() => document.querySelectorAll('.pfd')[1].textContent.includes('replaced by a newer one')")
    # The GIL's words are explained where one points at them, by the mouse or by Tab.
    notebook.run(4)
    notebook.wait(4)
    gil = page.locator(".pfd").nth(3)
    gil.locator('[data-tab="gil"]').click()
    holder = gil.locator(".blame th", has_text="other: IOPub")
    holder.wait_for()
    assert "the notebook's own thread" in holder.get_attribute("title")
    word = gil.locator(".verdicts abbr", has_text="other Python threads").first
    word.focus()
    assert word.evaluate("(word) => word === document.activeElement && word.title") == (
        "IOPub is the notebook's own thread, which carries what cells print"
    )
    assert page.errors == []


SLOW = """import threading
from jupyter_ext import channel
gate, opened = threading.Event(), channel.Answers
channel.Answers = lambda *arguments: (gate.wait(), opened(*arguments))[1]"""
GO_ON = "gate.set()\nchannel.Answers = opened"


def test_a_recording_that_opens_slowly_is_waited_for_and_sources_are_shown(opened):
    lines = traced(10, 0).replace("%%pyfunc_trace", "%%pyfunc_trace --lines")
    cells = [SETUP, lines, SLOW, "%pyfunc_show 5", GO_ON, "%pyfunc_show --source augment"]
    notebook, page = opened, opened.page
    notebook.cells(cells)
    for cell in range(4):
        notebook.run(cell)
        notebook.wait(cell)
    slow = page.locator(".pfd").nth(1)
    slow.locator(".state", has_text="reading").wait_for()
    assert slow.locator(".ledger tbody tr").count() == 0
    notebook.run(4)
    notebook.wait(4)
    slow.locator(".d-call .ttl", has_text="#5").wait_for()
    assert slow.locator(".ledger tbody tr").count() > 3
    notebook.run(5)
    notebook.wait(5)
    source = page.locator(".pfd").nth(2)
    source.locator('[data-tab="source"][aria-selected="true"]').wait_for()
    line = source.locator(".src li", has_text="x.astype(np.float32) / 255")
    assert line.locator(".gr").inner_text() == "40×"
    source.scroll_into_view_if_needed()
    notebook.shot("lab-source-lines.png")
    forms = [output["data"] for output in notebook.outputs(5)]
    assert any("line traced runs" in form.get("text/plain", "") for form in forms), "the form that stays"
    assert page.errors == []
