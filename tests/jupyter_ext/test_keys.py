"""No key pressed in the panel reaches the notebook: not in JupyterLab, not in Notebook 7, not in VS Code's page."""

# ruff: noqa: E501 - JavaScript is long lines
from __future__ import annotations

import string

import pytest

from pyfunc_debug.api.recording import Recording
from tests.jupyter_ext.lab import Notebook, Server, browser, write_notebook
from tests.jupyter_ext.vscode import Output
from tests.limits import HANG_S
from tests.report import recordings

SETUP = """
%load_ext pyfunc_debug
import numpy as np, tensorflow as tf
import pyfunc_debug as pfd
from jupyter_ext import panel_front
panel_front._PING_S = PATIENCE

def body(x):
    y = x + 1
    return np.float32(y)

@tf.function
def step(x):
    return tf.numpy_function(body, [x], tf.float32)
"""
STOPPED = "%%pyfunc_trace\nb = pfd.break_on('body', hits=20, once=True)\nfor i in range(30): step(tf.constant(float(i)))\nb.remove()"

_NOTEBOOK = "window.jupyterapp.shell.currentWidget.content"
CELLS = f"""() => [
  {_NOTEBOOK}.widgets.map((cell) => [cell.model.id, cell.model.type, cell.model.sharedModel.getSource(), cell.model.executionCount,
    cell.outputHidden, cell.inputHidden, cell.model.executionState]),
  {_NOTEBOOK}.activeCellIndex, document.querySelectorAll('.jp-Dialog').length,
  {_NOTEBOOK}.widgets.filter((cell) => {_NOTEBOOK}.isSelectedOrActive(cell)).length]"""
MODIFIERS = ("Shift", "Control", "Alt", "Control+Shift")
NAMED = (
    "Enter",
    "Escape",
    "Backspace",
    "Delete",
    "ArrowUp",
    "ArrowDown",
    "ArrowLeft",
    "ArrowRight",
    "Home",
    "End",
    "PageUp",
    "PageDown",
    " ",
)
# What the browser itself does with them (close the tab, open a window, print) is not the notebook's.
BROWSERS_OWN = (
    {f"Control+{key}" for key in "wtnpoqr"}
    | {f"Control+Shift+{key}" for key in "WTNPOQRIJC"}
    | {"Alt+Home", "Alt+ArrowLeft", "Alt+ArrowRight", "Control+s"}
)
TWICE = "di0xac"
PDB = set("cnsrud")


def keys() -> list[str]:
    """All that a notebook knows, and all that the panel knows."""
    plain = [*string.ascii_lowercase, *string.digits, *"/[]?-=.,;'`", *NAMED]
    pressed = [*plain, *string.ascii_uppercase, *(f"{modifier}+{name}" for modifier in MODIFIERS for name in NAMED)]
    pressed += [f"Control+{key}" for key in (*string.ascii_lowercase, "-", "/", "]", "[")]
    pressed += [f"Control+Shift+{key}" for key in (*string.ascii_uppercase, "-")]
    return [key for key in pressed if key not in BROWSERS_OWN]


def notebooks_own() -> list[str]:
    """What JupyterLab and Notebook 7 have shortcuts for in command mode, and what moves."""
    return [*"abcdefhijklmnorstvxyz01", *NAMED, "Shift+Enter", "Control+Enter", "Alt+Enter", *"LMVZ", "Control+b"]


# As a key comes up again: is the notebook what it was? Then the target takes the focus for the next one. A key that
# came while something else had the focus, or while the rows were on their way, is kept from everybody, and missed.
LISTEN = """([target, before]) => {
  const seen = SEEN, wanted = JSON.stringify(before), modifiers = ['Shift', 'Control', 'Alt'];
  const state = { ups: 0, missed: [], harm: null }, ended = new AbortController();
  const focused = () => document.activeElement === document.querySelector(target);
  const take = () => document.querySelector(target)?.focus();
  const listen = (type, heard) => window.addEventListener(type, heard, { capture: true, signal: ended.signal });
  const look = (event) => { if (JSON.stringify(seen()) !== wanted) state.harm ??= event.key; };
  let missing = false;
  listen('keydown', (event) => {
    if (modifiers.includes(event.key)) { take(); return; }
    look(event);
    missing = !focused();
    if (missing) { event.preventDefault(); event.stopImmediatePropagation(); take(); }
  });
  listen('keyup', (event) => {
    if (modifiers.includes(event.key)) return;
    look(event);
    if (missing) state.missed.push(state.ups);
    state.ups++;
    setTimeout(take);
  });
  take();
  window.keysOf = () => { ended.abort(); return [state.ups, state.missed, state.harm]; };
}"""


def press_all(page, target, seen, before, skip=(), pressing=()):
    """Presses keys with the focus on `target`, every one or those given; after each the notebook is what it was."""
    pressed = [key for key in pressing or keys() if key not in skip for _ in range(2 if key in TWICE else 1)]
    page.wait_for_selector(target)
    page.evaluate(LISTEN.replace("SEEN", seen), [target, before])
    for key in pressed:
        page.keyboard.press(name(key))
    ups, missed, harm = page.evaluate("() => window.keysOf()")
    assert harm is None, f"{harm} on {target}, or the key before it, reached the notebook"
    assert ups == len(pressed)
    press_slowly(page, target, seen, before, [pressed[place] for place in missed])
    page.evaluate(
        "() => { const filter = document.querySelector('.pfd .filter input'); filter.value = ''; filter.dispatchEvent(new Event('input')); }"
    )


def press_slowly(page, target, seen, before, pressed):
    """The same with a question before each key, whether the target takes the focus."""
    look = f"(target) => {{ const e = document.querySelector(target); if (!e) return null; e.focus(); return [document.activeElement === e, ({seen})()]; }}"
    last = "nothing"
    for key in [*pressed, None]:
        answer = page.evaluate(look, target)
        if answer is None:  # rows that are on their way
            page.wait_for_selector(target)
            answer = page.evaluate(look, target)
        assert answer == [True, before], f"{last} on {target} reached the notebook"
        if key is not None:
            page.keyboard.press(name(key))
            last = key


def name(key):
    """What Playwright calls it."""
    return key[:-1] + "Space" if key.endswith(" ") else key


@pytest.mark.more  # the same keys and the same panel in VS Code are pressed in each suite
@pytest.mark.parametrize(("app", "width"), [("lab", 966), ("notebook", 1400)])
def test_no_key_pressed_in_the_panel_reaches_the_notebook(tmp_path, app, width):
    write_notebook(tmp_path / "a.ipynb", [SETUP.replace("PATIENCE", str(HANG_S)), STOPPED, "y = 2", "z = 3"])
    with Server(tmp_path, app) as server, browser((width, 1000)) as page:
        notebook = Notebook(page, server, "a.ipynb")
        notebook.wait_kernel()
        notebook.run(0)
        notebook.wait(0)
        notebook.run(1)
        page.wait_for_selector(".pfd .d-stop .board:not([hidden])")
        page.wait_for_selector(".pfd .ledger tbody tr[tabindex='0']")
        page.wait_for_selector(".pfd .calls tr[data-call]")
        page.evaluate("() => document.querySelector('.pfd').scrollIntoView({ block: 'start' })")
        for mode in ("edit", "command"):
            page.evaluate(f"(mode) => {{ {_NOTEBOOK}.activeCellIndex = 1; {_NOTEBOOK}.mode = mode; }}", mode)
            page.evaluate("() => document.querySelector('.pfd .ledger tbody tr').focus()")
            before = page.evaluate(CELLS)
            targets = (
                ".pfd .ledger tbody tr[tabindex='0']",
                ".pfd canvas.lanes",
                ".pfd",
                ".pfd .calls tbody tr[tabindex='0']",
                ".pfd .filter input",
                ".pfd .tabs button[tabindex='0']",
            )
            # One listener on the panel's root is for all of them: every key there and in a field, the notebook's own
            # elsewhere. Notebook 7 has JupyterLab's own code for shortcuts: one row and one field are enough there.
            chosen = targets[:1] if mode == "edit" else targets if app == "lab" else (targets[0], targets[4])
            for target in chosen:
                whole = app == "lab" and mode == "command" and target in (targets[0], targets[4])
                press_all(page, target, CELLS, before, pressing=() if whole else notebooks_own())
            if mode == "edit":
                continue
            page.locator(".pfd [data-tab=stop]").click()
            # In the Stop pane the letters are pdb's: those that end the stop come last.
            press_all(page, ".pfd .d-stop .scroll", CELLS, before, PDB - set("du"), notebooks_own())
            press_all(
                page,
                ".pfd .ask input",
                CELLS,
                before,
                {"Enter", "Shift+Enter", "Control+Enter", "Alt+Enter", "Control+Shift+Enter"},
                notebooks_own(),
            )
            page.locator(".pfd .ask input").fill("")

        # A click between the panel's parts is in the panel, too.
        page.locator(".pfd .lg .sh").click(position={"x": 150, "y": 8})
        page.keyboard.press("d")
        page.keyboard.press("d")
        assert page.evaluate(CELLS)[0] == before[0]

        # And the panel's own keys do what they say.
        axis = "document.querySelector('.pfd canvas.axis').toDataURL()"
        page.evaluate("() => document.querySelector('.pfd canvas.lanes').focus()")
        page.keyboard.press("f")
        for key in "wsad":
            page.wait_for_selector('.pfd canvas.lanes[aria-busy="false"]')  # what was asked for before is drawn
            shown = page.evaluate(f"() => {axis}")
            page.keyboard.press(key)
            page.wait_for_function(f"(old) => {axis} !== old", arg=shown)
        # While the cell runs rows are drawn anew: one may be another between the mouse's down and up.
        page.locator(".pfd .calls tr[data-call]").nth(2).click()
        page.wait_for_selector(".pfd .d-call .ttl")
        title = page.locator(".pfd .d-call .ttl").inner_text()
        page.locator('.pfd .d-call [data-focus="step]"]:not([disabled])').wait_for()
        page.keyboard.press("]")
        page.wait_for_function("(old) => document.querySelector('.pfd .d-call .ttl').textContent !== old", arg=title)
        page.evaluate("() => document.querySelector('.pfd canvas.lanes').focus()")
        page.keyboard.press("/")
        assert page.evaluate("() => document.activeElement.dataset.focus") == "filter"
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        assert page.locator(".pfd .help").is_visible()
        page.keyboard.press("Escape")
        # Saving is the notebook's, from everywhere.
        page.evaluate(
            "() => { window.saved = 0; window.jupyterapp.shell.currentWidget.context.saveState.connect((_, state) => { if (state === 'started') window.saved++; }); }"
        )
        page.evaluate("() => document.querySelector('.pfd canvas.lanes').focus()")
        page.keyboard.press("Control+s")
        page.wait_for_function("() => window.saved === 1")
        page.wait_for_function(
            "() => document.querySelector('.pfd canvas.lanes').hasAttribute('data-lm-suppress-shortcuts')"
        )

        # `b` was among the keys: every breakpoint goes, so that the cell ends.
        page.locator(".pfd [data-tab=stop]").click()
        removes = page.locator(".pfd .breaks button", has_text="remove")
        while left := removes.count():
            removes.first.click()
            page.wait_for_function("(n) => document.querySelectorAll('.pfd .breaks tbody tr').length < n", arg=left)
        page.locator(".pfd .d-stop .scroll").focus()
        line = page.locator(".pfd .d-stop .src li.cur").inner_text()
        page.keyboard.press("n")
        page.wait_for_function(
            "(old) => document.querySelector('.pfd .d-stop .src li.cur').innerText !== old", arg=line
        )
        page.wait_for_selector('.pfd .d-stop[aria-busy="false"]')
        page.locator(".pfd .d-stop .scroll").focus()
        page.keyboard.press("c")
        notebook.wait(1)


def test_no_key_pressed_in_the_panel_reaches_vs_code(tmp_path):
    """VS Code's webview hands every key that reaches its window to the workbench."""
    with browser((1200, 900)) as page:
        output = Output(page, Recording(str(recordings.small(tmp_path / "train.pfrec"))), "vscode-dark")
        try:
            page.evaluate(
                "() => { window.heard = []; for (const type of ['keydown', 'keyup', 'keypress']) window.addEventListener(type, (event) => window.heard.push(`${type} ${event.key}`)); }"
            )
            page.wait_for_selector(".pfd .calls tr[data-call]")
            for target in (
                ".pfd .ledger tbody tr[tabindex='0']",
                ".pfd .calls tbody tr[tabindex='0']",
                ".pfd canvas.lanes",
                ".pfd .filter input",
            ):
                field = target.endswith("input")
                press_all(page, target, "() => window.heard", [], pressing=() if field else notebooks_own())
            page.keyboard.press("Control+s")
            assert page.evaluate("() => window.heard")[0] == "keydown s"
        finally:
            output.close()
