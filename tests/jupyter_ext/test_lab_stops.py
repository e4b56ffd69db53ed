"""The panel's Stop tab in a real browser: buttons and console while the cell is stopped, and each way to the kernel."""

# ruff: noqa: E501 - JavaScript is long lines
from __future__ import annotations

import re

import ipykernel
import pytest
from playwright.sync_api import expect

from tests.jupyter_ext.lab import Notebook, Server, browser, write_notebook
from tests.limits import HANG_S

SETUP = """
%load_ext pyfunc_debug
import numpy as np, tensorflow as tf
import pyfunc_debug as pfd
from jupyter_ext import panel_front
panel_front._PING_S = PATIENCE
for left in pfd.breakpoints():
    left.remove()

def noise(shape):
    scale = 0.0
    return scale * np.ones(shape, np.float32)

def augment(x):
    x = x.astype(np.float32) / 10
    x = x + noise(x.shape)
    bright = float(x.mean())
    return np.clip(x, 0, 100).astype(np.float32)

def images(n, threads):
    ds = tf.data.Dataset.range(n).map(lambda i: tf.ones([4, 4]) * tf.cast(i, tf.float32))
    ds = ds.map(lambda x: tf.numpy_function(augment, [x], tf.float32), threads)
    options = tf.data.Options()
    options.threading.private_threadpool_size = max(threads, 2)  # else there are as many as cores
    return ds.with_options(options)

def total(n, threads=1):
    return round(sum(float(tf.reduce_max(x)) for x in images(n, threads)), 3)
"""
STOP = (
    "%%pyfunc_trace\nb = pfd.break_on('augment', condition='x.max() >= 3')\nprint('total', total(12, 3), b)\nb.remove()"
)
ONCE = "%%pyfunc_trace\nb = pfd.break_on('augment', hits=2, once=True)\nprint('total', total(3), b)\nb.remove()"
AFTER = "pfd.breakpoints() and [b.remove() for b in pfd.breakpoints()]\nprint('alive', total(3))"

_KERNEL = "window.jupyterapp.shell.currentWidget?.context?.sessionContext?.session?.kernel"
# No reply ever comes, as from a kernel that knows no such message; other messages (making a subshell) pass.
NO_CONTROL = f"""() => {{
    const kernel = {_KERNEL}, send = kernel.sendControlMessage.bind(kernel);
    kernel.sendControlMessage = (message, ...more) =>
        message.header.msg_type === 'pyfunc_debug_request' ? {{ done: new Promise(() => {{}}) }} : send(message, ...more);
}}"""
NO_SUBSHELL = f"() => {{ const kernel = {_KERNEL}; window.pfdSubshells ??= kernel.commsOverSubshells; kernel.commsOverSubshells = 'disabled'; }}"
BOTH_WAYS = f"""() => {{
    const kernel = {_KERNEL};
    delete kernel.sendControlMessage;
    if (window.pfdSubshells) kernel.commsOverSubshells = window.pfdSubshells;
}}"""


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """One notebook with one kernel, which imports TensorFlow once, for all tests here."""
    folder = tmp_path_factory.mktemp("notebooks")
    write_notebook(folder / "a.ipynb", ["1"])
    with Server(folder) as server, browser((1500, 1000)) as page:
        yield Notebook(page, server, "a.ipynb")


@pytest.fixture
def notebook(opened):
    """The notebook, as if it were just opened."""
    opened.wait_kernel()
    opened.page.errors.clear()
    yield opened
    opened.page.evaluate(BOTH_WAYS)


class Stopped:
    """A notebook whose cell 1 stops."""

    def __init__(self, notebook, cell, before=None, ping_s=HANG_S):
        """A page that answers pings is waited for, however long it takes."""
        self.page = notebook.page
        self.notebook = notebook
        notebook.cells([SETUP.replace("PATIENCE", str(ping_s)), cell, AFTER])
        notebook.run(0)
        notebook.wait(0)
        if before:
            self.page.evaluate(before)
        notebook.run(1)

    def wait(self):
        self.page.wait_for_selector(".pfd .d-stop .board:not([hidden])")
        self.page.evaluate("() => document.querySelector('.pfd').scrollIntoView({ block: 'start' })")

    def console(self):
        return self.page.locator(".pfd .con").inner_text()

    def prompts(self, act):
        """Does something, and waits for the prompt after it; the current line of the source."""
        before = len(self.console())
        act()
        self.page.wait_for_function("(n) => document.querySelector('.pfd .con').innerText.length > n", arg=before)
        self.page.wait_for_selector('.pfd .d-stop[aria-busy="false"]')
        return self.page.locator(".pfd .d-stop li.cur code").inner_text().strip()

    def press(self, name):
        return self.prompts(lambda: self.page.locator(f'.pfd [data-command="{name}"]').click())

    def type(self, line):
        def act():
            self.page.locator(".pfd .ask input").fill(line)
            self.page.keyboard.press("Enter")

        return self.prompts(act)

    def local(self, name):
        return self.page.locator(".pfd .locals tr", has=self.page.locator(f'th:text-is("{name}")')).inner_text()

    def printed(self, cell=1):
        return "".join(
            output.get("text", "") for output in self.notebook.outputs(cell) if output["output_type"] == "stream"
        )


def test_buttons_console_frames_and_keys_while_the_cell_is_stopped(notebook):
    page = notebook.page
    at = Stopped(notebook, STOP)
    at.wait()
    assert at.notebook.running(1)
    assert page.locator(".pfd .way").inner_text() == "over the control channel"
    assert "stopped in" in page.locator(".pfd .chip").inner_text()
    assert "augment if x.max() >= 3" in page.locator(".pfd .swhy").inner_text()
    assert page.locator('.pfd [data-tab="stop"]').get_attribute("aria-selected") == "true"

    assert at.press("next") == "x = x + noise(x.shape)"
    assert at.press("step") == "def noise(shape):"
    assert page.locator(".pfd .frames .lk").count() == 2
    assert at.press("next") == "scale = 0.0"
    assert at.press("up") == "x = x + noise(x.shape)"
    assert "float32[4, 4]" in at.local("x")
    assert at.press("down") == "scale = 0.0"
    # A frame is a click away, too.
    assert at.prompts(lambda: page.locator(".pfd .frames .lk").nth(1).click()) == "x = x + noise(x.shape)"
    assert f"cell [{notebook.count(0)}]:" in page.locator(".pfd .frames li.cur").inner_text()
    assert at.press("down") == "scale = 0.0"
    assert at.press("return") == "return scale * np.ones(shape, np.float32)"
    # With the focus in the pane, letters are pdb's; in the console they are letters.
    page.locator(".pfd .d-stop .scroll").focus()
    assert at.prompts(lambda: page.keyboard.press("n")) == "bright = float(x.mean())"
    # Three calls run at a time: whichever of them came first is here.
    at.type("p 'was', round(float(x.max()), 1)")
    was = float(re.search(r"\('was', (\d\.\d)\)", at.console())[1])
    assert was >= 0.3
    at.type("x = x + 100")
    at.type("p 'c n s', round(float(x.max()), 1)")
    assert f"('c n s', {100 + was:.1f})" in at.console()
    page.locator(".pfd .ask input").press("ArrowUp")
    assert page.locator(".pfd .ask input").input_value() == "p 'c n s', round(float(x.max()), 1)"
    page.locator(".pfd .ask input").fill("")
    assert at.press("next").startswith("return np.clip")
    assert f"{100 + was:.1f}" in at.local("bright")

    page.wait_for_function("() => document.querySelectorAll('.pfd .queue tr').length >= 1")
    assert "waits" in page.locator(".pfd .queue tr").first.inner_text()
    for theme in ("Light", "Dark"):
        at.notebook.theme(f"JupyterLab {theme}")
        page.wait_for_selector(f'.pfd[data-theme="{theme.lower()}"]')
        page.evaluate("() => document.querySelector('.pfd').scrollIntoView({ block: 'start' })")
        at.notebook.shot(f"lab-stop-{theme.lower()}.png")
    assert at.notebook.running(1)

    page.locator('.pfd [data-command="detach"]').click()
    at.notebook.wait(1)
    # 0 to 11 through augment, and the one that was changed by hand is clipped at 100.
    assert f"total {106.6 - was:.1f}" in at.printed()
    assert "1 stopped" in at.printed()
    page.wait_for_selector(".pfd .chip", state="hidden")
    assert "No call is stopped" in page.locator(".pfd .d-stop").inner_text()
    # The person's time is no part of the axis: the timeline says how much it leaves out.
    page.wait_for_function("() => / leaves out .+ at stops/.test(document.querySelector('.pfd .lanes').ariaLabel)")
    assert page.errors == []


def test_after_a_reload_interrupt_brings_the_panel_back(notebook):
    page = notebook.page
    at = Stopped(notebook, ONCE)
    at.wait()
    at.notebook.save()
    page.reload()
    page.wait_for_selector(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook", timeout=1000 * HANG_S)
    page.wait_for_function(f"() => {_KERNEL}?.connectionStatus === 'connected'")
    at.notebook.command("notebook:interrupt-kernel")
    # JupyterLab's widget manager looks for a model for two seconds, and does not look once more at their end
    # (get_model of @jupyter-widgets/base-manager): a kernel that answers in the last 100 ms of them, the others
    # a little later, gets "model not found" in the panel's place, until the next reload.
    found, lost = page.locator(".pfd .ledger tbody tr"), page.get_by_text("Error displaying widget")
    found.or_(lost).first.wait_for()
    while lost.count():
        page.reload()
        found.or_(lost).first.wait_for()
    # The panel answers again: a stop in a cell without a panel of its own is shown in it.
    at.notebook.wait_kernel()
    page.evaluate(
        '() => window.jupyterapp.shell.currentWidget.content.widgets[2].model.sharedModel.setSource(\'b = pfd.break_on("augment", once=True)\\nprint("total", total(3))\\nb.remove()\')'
    )
    at.notebook.run(2)
    at.wait()
    page.locator('.pfd [data-command="continue"]').click()
    at.notebook.wait(2)
    assert "is stopped: see the panel" in at.printed(2)
    assert "total 0.3" in at.printed(2)


def test_interrupt_and_restart_at_a_stop(notebook):
    page = notebook.page
    at = Stopped(notebook, ONCE)
    at.wait()
    page.locator('.pfd [data-command="interrupt"]').click()
    at.notebook.wait(1)
    assert any(output.get("ename") == "KeyboardInterrupt" for output in at.notebook.outputs(1)), at.notebook.outputs(1)
    at.notebook.run(2)
    at.notebook.wait(2)
    assert "alive 0.3" in at.printed(2)

    at.notebook.run(1)
    at.wait()
    page.evaluate(f"() => {{ {_KERNEL}.restart(); }}")
    page.wait_for_function("() => document.querySelector('.pfd .d-stop').textContent.includes('this stop is gone')")
    assert not page.locator(".pfd .chip").is_visible()


@pytest.mark.skipif(ipykernel.version_info[0] < 7, reason="older kernels have no subshells")
def test_without_the_control_channel_a_comm_does(notebook):
    page = notebook.page
    at = Stopped(notebook, ONCE, NO_CONTROL)
    at.wait()
    assert page.locator(".pfd .way").inner_text() == "over a comm"
    assert at.press("next") == "x = x + noise(x.shape)"
    at.type("x = x * 0")
    page.locator('.pfd [data-command="continue"]').click()
    at.notebook.wait(1)
    assert "total 0.2" in at.printed()


def test_without_either_the_input_box_asks_and_the_panel_says_so(notebook):
    page = notebook.page
    at = Stopped(notebook, ONCE, f"() => {{ ({NO_CONTROL})(); ({NO_SUBSHELL})(); }}", ping_s=1.5)
    box = page.locator(".jp-Stdin-input")
    box.wait_for()
    page.wait_for_function(
        "() => document.querySelector('.pfd .chip')?.textContent.includes('answer in the box under the cell')"
    )
    box.fill("x = x * 0")
    box.press("Enter")
    page.wait_for_function(
        "() => document.querySelector('.jp-Stdin-input') && !document.querySelector('.jp-Stdin-input').value"
    )
    box.fill("c")
    box.press("Enter")
    at.notebook.wait(1)
    assert "total 0.2" in at.printed()


def test_breakpoints_by_a_click_are_those_of_the_magic(notebook):
    cells = [SETUP.replace("PATIENCE", str(HANG_S)), "%%pyfunc_trace\nprint('total', total(3))", "%pyfunc_break list", "%%pyfunc_trace\nprint('total', total(6))",
             '%pyfunc_break augment --if "x.max() > 99"', "%pyfunc_break list", "%pyfunc_break clear"]  # fmt: skip
    notebook.cells(cells)
    page = notebook.page

    def run(cell):
        notebook.run(cell)
        notebook.wait(cell)
        return "".join(output.get("text", "") for output in notebook.outputs(cell))

    run(0)
    run(1)
    first, second = page.locator(".pfd").nth(0), page.locator(".pfd").nth(1)
    # A line of the body, in the gutter of Source.
    first.locator('[data-tab="source"]').click()
    line = first.locator(".src li", has_text="bright = float(x.mean())").locator("button.ln")
    line.click()
    first.locator('button.ln[aria-pressed="true"]').wait_for()
    number = line.get_attribute("data-line")
    assert f":{number}, 0 hits" in run(2)
    # Its condition, checked as it is typed.
    first.locator('[data-tab="stop"]').click()
    condition = first.locator(".breaks .bpif input")
    condition.fill("x.max( >")
    first.locator('.bpif input[aria-invalid="true"]').wait_for()
    assert "not a Python expression" in first.locator(".bps > .trouble").inner_text()
    condition.fill("x.max() >= 0.35")
    condition.press("Enter")
    page.wait_for_function("() => !document.querySelector('.pfd .bps > .trouble').textContent")
    assert "if x.max() >= 0.35" in run(2)

    notebook.run(3)
    second.locator(".d-stop .board").wait_for()
    assert second.locator(".d-stop .src li.cur code").inner_text().strip() == "bright = float(x.mean())"
    # At the stop, while the cell runs: off, on, and another one on the node; then all go.
    assert notebook.running(3)
    rows = second.locator(".breaks tr[data-breakpoint]")
    rows.locator('input[type="checkbox"]').click()
    second.locator(".breaks tr.off[data-breakpoint]").wait_for()
    second.locator('.bps [data-focus="bp-where"]').fill("noise")
    second.locator('.bps [data-focus="bp-where"]').press("Enter")
    rows.nth(1).wait_for()
    second.locator(".breaks button", has_text="remove").nth(1).click()
    rows.nth(1).wait_for(state="detached")
    assert rows.count() == 1
    second.locator(".breaks button", has_text="remove").click()
    second.locator(".breaks tbody tr").wait_for(state="detached")
    second.locator('[data-command="continue"]').click()
    notebook.wait(3)
    assert "total 1.5" in "".join(output.get("text", "") for output in notebook.outputs(3))

    # What a cell sets, the panel shows; and a row's own button takes it away.
    run(4)
    second.locator(".breaks tbody tr", has_text="augment").wait_for()
    assert second.locator(".breaks .bpif input").input_value() == "x.max() > 99"
    second.locator('.ledger tr[data-key^="n"]', has_text="augment").first.click()
    second.locator('.brk[aria-pressed="true"]').click()
    second.locator('.brk[aria-pressed="false"]').wait_for()
    assert "no breakpoints" in run(5)
    # A call: once. It is set for the node, and any call of that says so.
    button = second.locator('[data-focus="stop-here-next"]')
    title = second.locator(".chead .ttl")
    second.locator(".calls tr[data-call]").first.click()
    button.click()
    second.locator('[data-focus="stop-here-next"]', has_text="the next call stops").wait_for()
    shown = title.inner_text()
    page.keyboard.press("]")
    expect(title).not_to_have_text(shown)
    expect(button).to_have_text("the next call stops")
    assert "augment" in run(5)
    # It is no longer there: the panel says so, and a press that a repaint cuts sets it again.
    run(6)
    expect(button).to_have_text("stop here next time")
    shown, box = title.inner_text(), button.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.keyboard.press("[")
    expect(title).not_to_have_text(shown)
    page.mouse.up()
    expect(button).to_have_text("the next call stops")
    assert page.errors == []
