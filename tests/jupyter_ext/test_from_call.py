"""The panel by hand, in JupyterLab and Notebook 7: from a call on, at a stop, beside bodies that run, at first sight.

The module has one page and one kernel a front end. Notebook 7 runs what depends on it: that a panel is drawn, stops,
runs beside a cell, speaks with later cells and opens files. What is asked of a recording, and what the panel draws of
the answer, is the same code in both: JupyterLab alone runs that.
"""

from __future__ import annotations

import os
import re

import pytest
from playwright.sync_api import expect

from tests import forked
from tests.jupyter_ext.lab import Notebook, Server, browser, write_notebook
from tests.limits import HANG_S

SETUP = """
%load_ext pyfunc_debug
import numpy as np, tensorflow as tf
import pyfunc_debug as pfd
from jupyter_ext import panel_front
panel_front._PING_S = PATIENCE

def brighten(images, by):
    bright = np.clip(images * by, 0, 1)
    low = float(bright.min())
    high = float(bright.max())
    middle = (low + high) / 2
    spread = high - low
    if spread == 0:
        spread = 1.0
    mean = float(bright.mean())
    dark = mean < middle
    parts = {"low": low, "high": high}
    if dark:
        parts["dark"] = True
    count = 0
    for image in bright:
        count += int(image.mean() > middle)
    parts["count"] = count
    return bright.astype(np.float32)

@tf.function
def step(images, by):
    return tf.numpy_function(brighten, [images, by], tf.float32)

y, x = np.mgrid[0:24, 0:24] / 24
batch = np.stack([np.hypot(x - k / 6, y - .5) for k in range(6)]).astype(np.float32)[..., None]
"""
FULL = """%%pyfunc_trace --values full
import threading
def epoch(by):
    step(tf.constant(batch), tf.constant(by))
for by in (.5, 1., 1.5, .5):
    thread = threading.Thread(target=epoch, args=[by])
    thread.start()
    thread.join()"""
BARE = "%%pyfunc_trace\nout = step(tf.constant(batch), tf.constant(2.))"
AGAIN = "%%pyfunc_trace\nout = step(tf.constant(batch), tf.constant(3.))\nprint('kept')"
KEPT = "print([value.kept for value in _pyfunc.call(1).inputs])"
FILE = """%%pyfunc_trace --values full
import bodies
tf.function(lambda x: tf.numpy_function(bodies.halve, [x], tf.float32))(tf.constant([4., 2.]))"""
RUNS = """%%pyfunc_trace
import os, time
def slowly(x):
    passed = 0
    while not os.path.exists("enough"):
        passed += 1
        time.sleep(0.01)  # else the page that looks waits for the core
    return x
out = tf.function(lambda x: tf.numpy_function(slowly, [x], tf.float32))(tf.constant(1.))"""
MADE = """from pathlib import Path
from tests.report import recordings
_pyfunc = pfd.open(recordings.small(Path("made.pfrec")))
%pyfunc_show"""
CUT = "(table) => [...table.querySelectorAll('td:not(.c-status), td .in')].filter((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth).map((one) => one.textContent)"  # noqa: E501 - JavaScript
CUT_AT_ANY_WIDTH = """(panel) => {
    const found = new Set();
    const numbers = ".grid td:not(.l):not(.c-status), .blame th, .ledger .in, .top b, .tabs .n, .kv b, .if";
    for (let width = 300; width <= 1600; width += 50) {
        panel.style.width = `${width}px`;
        for (const one of panel.querySelectorAll(numbers)) {
            if (!one.clientWidth || one.querySelector("canvas, svg, .bar")) continue;
            const hides = getComputedStyle(one).overflow !== "visible";
            const box = one.closest("td, th, span, div").getBoundingClientRect();
            const pane = one.closest(".lgbox, .callsbox, .detail, .top")?.getBoundingClientRect();
            const out = pane && !one.closest(".gcols, .top") && box.right > pane.right + 1 && box.left < pane.right - 1;
            if (out || (hides && one.scrollWidth > one.clientWidth + 1))
                found.add(`${width}: ${one.className} ${one.textContent.slice(0, 40)}`);
        }
    }
    panel.style.width = "";
    return [...found];
}"""
in_lab = pytest.mark.parametrize("lab", ["lab"], indirect=True)
BODIES = "def halve(x):\n    return x / 2\n"
STOP = "%%pyfunc_trace\nb = pfd.break_on('brighten')\nout = step(tf.constant(batch), tf.constant(4.))\nb.remove()"


@pytest.fixture(scope="module", params=["lab", pytest.param("notebook", marks=pytest.mark.more)])
def lab(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebooks")
    write_notebook(
        folder / "call.ipynb", [SETUP.replace("PATIENCE", str(HANG_S)), FULL, BARE, AGAIN, KEPT, STOP, RUNS, MADE, FILE]
    )
    (folder / "bodies.py").write_text(BODIES)
    with Server(folder, request.param) as server, browser((1400, 1000)) as page:
        notebook = Notebook(page, server, "call.ipynb")
        notebook.app = request.param
        notebook.folder = folder
        notebook.wait_kernel()
        for cell in (0, 1):
            notebook.run(cell)
            notebook.wait(cell)
        expect(page.locator(".jp-OutputArea .pfd .state").first).to_contain_text("recorded")
        yield notebook
        # Notebook 7.6 itself logs the other one when it opens a notebook before its settings have come.
        assert [one for one in page.errors if "reading 'schema'" not in one] == []


@pytest.fixture
def panel(lab):
    """The panel of the cell that kept its values, with call 1 selected."""
    panel = lab.page.locator(".jp-OutputArea .pfd").first
    panel.scroll_into_view_if_needed()
    panel.locator('.calls tr[data-call="1"]').click()
    expect(panel.locator(".d-call .ttl")).to_contain_text("brighten #1")
    return panel


def test_a_value_is_looked_at_as_a_batch_of_images_and_a_scalar_over_its_calls(panel, lab):
    expect(panel.locator(".vals .spark")).to_have_count(1)
    assert "4 calls" in panel.locator(".vals .spark").get_attribute("aria-label")
    panel.locator(".imgs canvas.opens").first.click()
    look = panel.locator(".look")
    expect(look.locator(".frames canvas")).to_have_count(6)
    expect(look.locator(".large canvas")).to_have_count(1)
    expect(look).to_contain_text("images  float32[6, 24, 24, 1]")
    lab.shot(f"look-{lab.app}.png")
    panel.locator(".imgs canvas.opens").first.press("Enter")
    look.get_by_role("button", name="Close").click()
    expect(look).to_be_hidden()


@in_lab
def test_two_calls_stand_side_by_side_with_their_difference_as_a_picture(panel):
    panel.get_by_role("button", name="Pin", exact=True).click()
    panel.locator('.calls tr[data-call="4"]').click()
    panel.get_by_role("button", name="Compare with #1").click()
    sides = panel.locator(".look .sides tbody tr")
    expect(sides).to_have_count(3)
    expect(sides.nth(0)).to_contain_text("equal")
    panel.locator(".look input").fill("2")
    panel.get_by_role("button", name="Compare", exact=True).last.click()
    expect(sides.nth(2)).to_contain_text("max |Δ| 0.499")
    expect(sides.nth(2).locator("canvas")).to_have_count(3)


@in_lab
def test_the_body_runs_again_with_other_inputs_and_under_the_debugger(panel, lab):
    panel.get_by_role("button", name="Replay").click()
    look = panel.locator(".look")
    look.get_by_role("button", name="Run again").click()
    expect(look).to_contain_text("It returned what was recorded.")
    look.get_by_label("Input by, a Python expression").fill("by * 0")
    look.get_by_role("button", name="Run again").click()
    expect(look).to_contain_text("with by edited")
    expect(look).to_contain_text("max |Δ|")
    look.get_by_label("Input by, a Python expression").fill("nothing")
    look.get_by_role("button", name="Run again").click()
    expect(look).to_contain_text("NameError")
    look.get_by_label("Input by, a Python expression").fill("")
    look.get_by_role("button", name="Under the debugger").click()
    expect(panel.locator(".d-stop .board")).to_be_visible()
    expect(panel.locator(".d-stop .src li.cur")).to_contain_text("bright = np.clip(images * by, 0, 1)")
    panel.locator(".d-stop .ask input").fill("by = np.float32(0.25)")
    panel.locator(".d-stop .ask input").press("Enter")
    expect(panel.locator(".d-stop .locals").first).to_contain_text("0.25")  # another test watches an expression
    panel.locator(".d-stop [data-command='continue']").click()
    panel.get_by_role("tab", name="Call").click()
    expect(look).to_contain_text("something else than was recorded")


@in_lab
def test_a_call_becomes_a_test_to_copy_and_to_save_that_runs(panel, lab):
    panel.get_by_role("button", name="As a test").click()
    look = panel.locator(".look")
    text = look.locator("pre.testfile")
    expect(text).to_contain_text("def test_brighten_call_1():")
    expect(text).to_contain_text("because it is in a cell")
    expect(look).to_contain_text("with its arrays in test_brighten_call_1.npz")
    file = lab.folder / "test_brighten_call_1.py"
    assert file.read_text() == text.text_content(), "with arrays beside it, it is saved at once"
    look.get_by_role("button", name="Copy").click()
    expect(look.get_by_role("button", name="Copy")).to_have_count(0)
    ran = forked.run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, file.name, cwd=lab.folder
    )  # fmt: skip
    assert "1 passed" in ran.stdout, ran.stdout[-2000:]


@in_lab
def test_calls_are_filtered_by_what_breakpoints_understand_and_an_error_is_said(panel):
    box, rows, note = panel.locator(".callsif input"), panel.locator(".calls tr[data-call]"), panel.locator(".cs .note")
    for condition, found in {
        "nan(images)": [], "inf(out)": [], "out.max() >= 1": ["2", "3"], "changed(by)": ["2", "3", "4"],
        "changed(images)": [], "shape(images) == (6, 24, 24, 1)": ["1", "2", "3", "4"], "shape(by)": [],
        "by < 1 and call.id > 1": ["4"],
    }.items():  # fmt: skip
        box.fill(condition)
        box.press("Enter")
        expect(rows).to_have_count(len(found))
        assert [row.get_attribute("data-call") for row in rows.all()] == found, condition
        expect(panel.get_by_text("No call fulfils the filter.")).to_be_visible(visible=not found)
        expect(note).to_have_text("")
    for condition, said in {
        "by >": "condition='by >' is not a Python expression: invalid syntax",
        "height > 1": "no call has 'height'. There are: ",
        "by.upper()": "by.upper() could not be evaluated for any of 4 calls. Call #1, ",
    }.items():  # fmt: skip
        box.fill(condition)
        box.press("Enter")
        expect(note).to_contain_text(said)
        expect(rows).to_have_count(0)
    box.fill("")
    box.press("Enter")
    expect(rows).to_have_count(4)
    expect(note).to_have_text("")


def test_values_that_were_not_kept_are_kept_by_a_click_from_the_next_cell_on(lab):
    lab.run(2)
    lab.wait(2)
    panel = lab.page.locator(".jp-OutputArea .pfd").nth(1)
    panel.locator('.calls tr[data-call="1"]').click()
    keep = panel.locator(".d-call .keep").first
    expect(keep).to_contain_text('values={"brighten": "full"}')
    keep.get_by_role("button", name="Keep them").click()
    expect(keep).to_contain_text("the next cell with %%pyfunc_trace keeps them")
    for cell in (3, 4):
        lab.run(cell)
        lab.wait(cell)
    assert "'full', 'full'" in lab.outputs(4)[0]["text"]


def next_panel(lab):
    """The panel of the cell that runs next: the one that is not there yet, wherever the cell stands."""
    mark = "data-before-" + lab.page.evaluate("() => crypto.randomUUID()")
    panels = lab.page.locator(".jp-OutputArea .pfd")
    panels.evaluate_all("(those, mark) => those.forEach((one) => one.setAttribute(mark, ''))", mark)
    return lab.page.locator(f".jp-OutputArea .pfd:not([{mark}])")


def test_a_stop_is_shown_by_the_panel_of_its_recording_only_and_takes_no_time(lab):
    older, own = lab.page.locator(".jp-OutputArea .pfd").first, next_panel(lab)
    lab.run(5)
    expect(own.locator(".d-stop .board")).to_be_visible()
    expect(own.locator(".top .chip")).to_be_visible()
    expect(own.locator('.calls tr[aria-selected="true"]')).to_contain_text("stopped")
    expect(older.locator(".top .chip")).to_be_hidden()
    expect(older.locator(".d-stop .none")).to_contain_text("brighten #1 is stopped in another cell")
    own.scroll_into_view_if_needed()
    lab.shot(f"stop-of-one-panel-{lab.app}.png")
    stop = own.locator(".d-stop")
    lines = "(scroll) => { const box = scroll.getBoundingClientRect(); return [...scroll.querySelectorAll('li')].filter((li) => { const r = li.getBoundingClientRect(); return r.top >= box.top - 1 && r.bottom <= box.bottom + 1; }).length; }"  # noqa: E501 - JavaScript
    assert stop.locator(".scroll").evaluate(lines) >= 15
    expect(stop.locator(".locals td.ranged").first).to_contain_text(" to ")
    whole = "(cells) => cells.every((td) => { const b = td.querySelector('b').getBoundingClientRect(), r = td.getBoundingClientRect(); return b.right <= r.right + 1 && b.bottom <= r.bottom + 1; })"  # noqa: E501 - JavaScript
    assert stop.locator(".locals td.ranged").evaluate_all(whole), "a range is not cut: its row gets another line"
    # Beside a stop the other bodies are looked at; the stopped one is here already.
    stop.get_by_role("button", name="Look", exact=True).click()
    expect(stop.locator(".side .running [role=status]")).to_have_text("No other body runs now.")
    expect(stop.get_by_role("button", name="Pause a running body")).to_be_hidden()
    stop.locator(".src li", has_text="spread = high - low").locator("button.ln").click()
    expect(stop.locator(".src li.cur")).to_contain_text("spread = high - low")
    stop.get_by_label("Expression to watch").fill("high * 2")
    stop.get_by_label("Expression to watch").press("Enter")
    expect(stop.locator(".watch tr")).to_contain_text("2.0")
    stop.get_by_label("Edit high").click(force=True)
    stop.get_by_label("New value of high").fill("21.0")
    stop.get_by_label("New value of high").press("Enter")
    expect(stop.locator(".watch tr")).to_contain_text("42.0")
    stop.locator("[data-command='continue']").click()
    lab.wait(5)
    own.get_by_role("tab", name="Call").click()
    expect(own.locator(".d-call .chead")).to_contain_text("stopped")
    expect(own.locator('.calls tr[aria-selected="true"]')).to_contain_text("#1")


@in_lab
def test_the_way_back_an_arrow_to_what_is_out_of_sight_and_a_link(panel, lab):
    page, title = lab.page, panel.locator(".d-call .ttl")
    panel.locator('.calls tr[data-call="4"]').click()
    expect(title).to_contain_text("brighten #4")
    page.keyboard.press(",")
    expect(title).to_contain_text("brighten #1")
    page.keyboard.press(".")
    expect(title).to_contain_text("brighten #4")
    lanes, arrow = panel.locator("canvas.lanes"), panel.locator(".arrow")
    whole = lanes.get_attribute("aria-label")
    lanes.focus()
    page.keyboard.press("f")
    expect(lanes).not_to_have_attribute("aria-label", whole)
    for _ in range(20):  # until nothing but a part of this call is in sight
        page.keyboard.press("w")
    expect(arrow).to_be_hidden()
    panel.locator('.calls tr[data-call="1"]').click()
    expect(arrow).to_have_text("◀ #1")
    arrow.click()
    expect(arrow).to_be_hidden()
    link = panel.get_by_role("button", name="copy link")
    assert link.get_attribute("title") == "Copies %pyfunc_show 1"
    link.click()
    expect(panel.locator('[data-focus="copy-place"]')).to_have_text(re.compile(r"copied|%pyfunc_show 1"))


@in_lab
def test_breakpoints_are_set_completed_checked_and_removed_by_hand(panel, lab):
    panel.get_by_role("tab", name="Source").click()
    line = panel.locator(".d-source .src li", has_text="spread = high - low").locator("button.ln")
    line.click()
    expect(panel.locator('.d-source button.ln[aria-pressed="true"]')).to_have_count(1)
    panel.get_by_role("tab", name="Stop").click()
    rows = panel.locator(".breaks tr[data-breakpoint]")
    expect(rows).to_have_count(1)
    condition = rows.locator(".bpif input")
    condition.fill("by >")
    expect(condition).to_have_attribute("aria-invalid", "true")
    condition.fill("by > 1")
    condition.press("Enter")
    expect(condition).not_to_have_attribute("aria-invalid", "true")
    panel.get_by_label("Where to stop").fill("bright*")
    added = panel.get_by_label("Condition", exact=True)
    added.fill("images.max() > 2 and by.sh")
    options = panel.locator(f"datalist[id='{added.get_attribute('list')}'] option")
    expect(options).to_have_count(1)
    assert options.get_attribute("value") == "images.max() > 2 and by.shape"
    added.fill("nan(images)")
    panel.get_by_label("First hit that stops").fill("3")
    panel.locator(".bps").get_by_role("button", name="Add").click()
    expect(rows.nth(1)).to_contain_text("from hit 3")
    rows.nth(1).get_by_label("on", exact=False).first.click()
    expect(panel.locator(".breaks tr.off[data-breakpoint]")).to_have_count(1)
    for left in (1, 0):
        rows.first.get_by_role("button", name="Remove").click()
        expect(rows).to_have_count(left)
    panel.get_by_role("tab", name="Call").click()


def test_what_runs_is_looked_at_and_paused_while_its_cell_runs(lab):
    own = next_panel(lab)
    lab.run(6)
    expect(own.locator(".calls tr[data-call]")).to_have_count(1)
    own.get_by_role("tab", name="Stop").click()
    own.get_by_role("button", name="Look", exact=True).click()
    runs = own.locator(".running .runs")
    expect(runs.locator("p")).to_contain_text("slowly #1 runs on")
    expect(runs.locator(".frames")).to_contain_text("slowly")
    expect(runs.locator(".locals")).to_contain_text("passed")
    expect(own.locator(".d-stop .board")).to_be_hidden()
    lab.shot(f"look-now-{lab.app}.png")
    own.get_by_role("button", name="Pause a running body").click()
    stop = own.locator(".d-stop .board")
    expect(stop).to_be_visible()
    expect(stop.locator(".swhy")).to_contain_text("slowly #1")
    expect(runs).to_have_count(0)  # what was seen is old
    (lab.folder / "enough").touch()
    stop.locator("[data-command='continue']").click()
    lab.wait(6)
    expect(stop).to_be_hidden()
    own.get_by_role("button", name="Look", exact=True).click()
    expect(own.locator(".running [role=status]")).to_have_text("No body runs now.")


@in_lab
def test_at_first_sight_the_failed_call_its_finding_whole_numbers_and_what_if(lab):
    page, panels = lab.page, lab.page.locator(".jp-OutputArea .pfd")
    own = next_panel(lab)
    lab.run(7)
    lab.wait(7)
    expect(own.locator('.calls tr[aria-selected="true"]')).to_contain_text("ValueError")
    expect(own.locator(".d-call .failure")).to_be_visible()
    # What marks a row is a finding.
    marked = own.locator(".ledger tr", has=page.locator(".sev"))
    marked.first.click()
    rule = own.locator(".why p").first.inner_text().partition(":")[0]
    own.get_by_role("tab", name="Findings").click()
    expect(own.locator(".finds .rule", has_text=rule).first).to_be_visible()
    # Few findings are open at first: what to paste is read without a click.
    assert 0 < own.locator(".finds > li").count() <= 5
    expect(own.locator(".finds .fix").first).to_be_visible()
    own.locator(".finds .rule").first.click()
    expect(own.locator(".finds .fix").first).to_be_hidden()
    # A call can be reached in a narrow window.
    for width in (1400, 966):
        page.set_viewport_size({"width": width, "height": 1000})
        own.scroll_into_view_if_needed()
        own.locator(".calls tr[data-call]").nth(1).click()
        own.get_by_role("tab", name="Call").click()
        expect(own.locator(".vals .ty").first).to_be_visible()
    page.set_viewport_size({"width": 1400, "height": 1000})
    # Names and digits are whole in each table, however wide the panel is.
    cut = []
    for tab in ("Call", "GIL", "Findings"):
        own.get_by_role("tab", name=tab).click()
        expect(own.locator(f".d-{tab.lower()} :is(.vals, .blame, .rule)").first).to_be_attached()
        cut += own.evaluate(CUT_AT_ANY_WIDTH)
    assert not cut, "\n".join(cut)
    own.evaluate("(panel) => panel.scrollIntoView()")  # its output was wider and narrower
    # Lanes are pools'; the filter takes globs; sorted, the worst row is on top.
    lanes = own.locator("canvas.lanes")
    expect(lanes).to_have_attribute("aria-label", re.compile(r"lanes \(main, inter-op.*, tf\.data 1, tf\.data 2"))
    expect(panels.first.locator("canvas.lanes")).to_have_attribute("aria-label", re.compile(r"lanes \(epoch, inter-op"))
    rows = own.locator(".ledger tbody tr")
    own.get_by_label("Filter the ledger").fill("log_*")
    expect(rows).to_have_count(3)  # its function, the node, the node's gradient
    own.get_by_label("Filter the ledger").fill("")
    own.locator(".ledger [data-column=total_ns]").click()
    most = [float(one.replace(",", "")) for one in own.locator(".ledger .nd .c-total_ns").all_inner_texts()]
    assert most == sorted(most, reverse=True)
    own.locator(".ledger [data-column=total_ns]").click(click_count=2)
    own.get_by_role("tab", name="GIL").click()
    for seen in (".ifline", ".blame tbody tr", ".verdicts li"):
        expect(own.locator(".d-gil").locator(seen).first).to_be_in_viewport(ratio=1)
    assert own.locator(".d-gil").evaluate("(pane) => pane.scrollTop") == 0
    expect(own.locator(".ifline .if")).to_have_count(4)
    # A call that waited says in its hover behind whom.
    name = own.locator(".worst .lk").first.inner_text()
    own.locator(".worst .lk").first.click()
    expect(own.locator(".d-call .ttl")).to_have_text(name)
    behind = own.locator(".d-call .behind")
    expect(behind).to_be_visible()
    expect(lanes).to_have_attribute("aria-busy", "false")
    whole = lanes.get_attribute("aria-label")
    lanes.focus()
    page.keyboard.press("f")
    expect(lanes).not_to_have_attribute("aria-label", whole)
    expect(lanes).to_have_attribute("aria-busy", "false")  # its calls have come
    box, tip = lanes.bounding_box(), own.locator(".tip")
    for row in range(int(box["height"] // 26)):  # a busy machine uses more threads
        page.mouse.move(box["x"] + 66 + (box["width"] - 66) / 2, box["y"] + 26 * row + 18)
        if name in (tip.text_content() or ""):
            break
    expect(tip).to_contain_text(name)
    expect(tip).to_contain_text(behind.inner_text().split(",")[0])


def test_the_line_of_a_call_opens_in_the_editor(lab, panel):
    expect(panel.locator(".d-call").get_by_role("button", name="go to the cell")).to_be_visible()
    own = next_panel(lab)
    lab.run(8)
    lab.wait(8)
    if lab.app == "notebook":  # it does not say which folder it serves
        expect(own.locator(".d-call").get_by_role("button", name="copy place")).to_be_visible()
        return
    link = own.locator(".d-call").get_by_role("button", name="open in editor")
    assert '"path":"bodies.py","id":"#line=0"' in link.get_attribute("data-commandlinker-args")
    link.click()
    ask = lab.page.locator(".jp-Dialog .jp-mod-accept")  # where the notebook is not trusted
    editor = lab.page.locator(".jp-FileEditor")
    expect(ask.or_(editor)).to_be_visible()
    if ask.count():
        ask.click()
    expect(editor).to_contain_text("def halve(x):")
    lab.page.evaluate("() => window.jupyterapp.commands.execute('application:close')")
    expect(own).to_be_visible()  # for the tests that come after
