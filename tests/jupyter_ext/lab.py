"""JupyterLab or Notebook 7 with a headless Chromium: no network, no token, own folders, nothing left behind.

Kernels are forked from a process that has imported TensorFlow.
"""

# ruff: noqa: E501 - command lines and JavaScript are long lines
from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests import forked
from tests.limits import HANG_S

ROOT = Path(__file__).parents[2]
ARTIFACTS = ROOT / "artifacts"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium"))), "chromium")
"""Debian's, without a window where it is there: a page takes four fifths of the CPU."""
CHROMIUM_OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--disable-extensions",
    # No second, better translation of what runs for a second: Perfetto's WebAssembly, JupyterLab's scripts.
    "--js-flags=--liftoff-only --no-opt",
]  # fmt: skip
_SETTINGS: dict[str, Any] = {
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False, "confirmClosingDocument": False},
    # Cells outside the window have no elements when windowing is on.
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none", "kernelShutdown": True},
    "@jupyterlab/extensionmanager-extension:plugin": {"enabled": False},
}
# jsonschema would build 38 parsers for addresses in any alphabet, 1 s of CPU at each start, where it can.
_START = "import runpy, sys; sys.modules['rfc3987_syntax'] = None; runpy.run_module({!r}, run_name='__main__')"
# Nothing is built here, and no language server asked for.
_PAGE = {
    "buildAvailable": False, "buildCheck": False,
    "disabledExtensions": {"@jupyterlab/lsp-extension": True, "@jupyterlab/extensionmanager-extension": True},
}  # fmt: skip
_POLL_MS = 50
"""Else a waiting page is asked, and drawn, 60 times a second."""
_KERNEL = "window.jupyterapp.shell.currentWidget?.context?.sessionContext?.session?.kernel"
_CELLS = "window.jupyterapp.shell.currentWidget.content.widgets"


def write_notebook(path: Path, cells: list[str]) -> None:
    """A notebook with these code cells."""
    notebook = {
        "nbformat": 4, "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "python3", "language": "python"}},
        "cells": [
            {"cell_type": "code", "id": f"cell{i}", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
            for i, source in enumerate(cells)
        ],
    }  # fmt: skip
    path.write_text(json.dumps(notebook))


class Server:
    """A Jupyter server over one folder. Use it with `with`."""

    def __init__(self, folder: Path, app: str = "lab") -> None:
        self.folder, self.app = folder, app
        self.url = ""  # of a port that the server chooses
        self._home = Path(tempfile.mkdtemp(prefix="pfd-lab-"))

    def __enter__(self) -> Server:
        home = self._home
        (home / "config" / "labconfig").mkdir(parents=True)
        (home / "config" / "labconfig" / "default_setting_overrides.json").write_text(json.dumps(_SETTINGS))
        (home / "config" / "labconfig" / "page_config.json").write_text(json.dumps(_PAGE))
        environment = {
            **os.environ, "JUPYTER_CONFIG_DIR": f"{home}/config", "JUPYTER_DATA_DIR": f"{home}/data",
            "JUPYTER_RUNTIME_DIR": f"{home}/runtime", "JUPYTERLAB_SETTINGS_DIR": f"{home}/settings",
            "JUPYTERLAB_WORKSPACES_DIR": f"{home}/workspaces", "IPYTHONDIR": f"{home}/ipython",
            "JUPYTER_PATH": os.path.dirname(forked.kernels()), "TF_CPP_MIN_LOG_LEVEL": "3", "PYDEVD_DISABLE_FILE_VALIDATION": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        }  # fmt: skip
        name = "LabApp" if self.app == "lab" else "JupyterNotebookApp"
        command = [
            sys.executable, "-c", _START.format("jupyterlab" if self.app == "lab" else "notebook"), "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0",
            "--IdentityProvider.token=", "--ServerApp.password=",
            "--ServerApp.disable_check_xsrf=True", f"--ServerApp.root_dir={self.folder}", f"--{name}.expose_app_in_browser=True",
            "--ServerApp.terminals_enabled=False", "--ServerApp.jpserver_extensions={'jupyter_lsp': False}",
        ]  # fmt: skip
        self._log = open(home / "server.log", "w")
        self.log = home / "server.log"
        self._process = subprocess.Popen(
            command, env=environment, stdout=self._log, stderr=subprocess.STDOUT, start_new_session=True
        )
        deadline = time.monotonic() + HANG_S
        while True:
            try:
                [told] = (home / "runtime").glob("jpserver-*.json")
                self.url = f"http://127.0.0.1:{json.loads(told.read_text())['port']}"
                urllib.request.urlopen(f"{self.url}/api/status", timeout=HANG_S).read()
                return self
            except (OSError, ValueError):  # nothing is told yet, or not the whole of it
                if self._process.poll() is not None or time.monotonic() > deadline:
                    text = (home / "server.log").read_text()[-3000:]
                    self.__exit__()
                    raise RuntimeError(f"the Jupyter server did not start:\n{text}") from None
                time.sleep(0.1)

    def __exit__(self, *error: object) -> None:
        try:
            request = urllib.request.Request(f"{self.url}/api/shutdown", method="POST")
            urllib.request.urlopen(request, timeout=HANG_S).read()
            self._process.wait(HANG_S)
        except (OSError, subprocess.TimeoutExpired):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._log.close()
        shutil.rmtree(self._home, ignore_errors=True)


_chromium: list[Any] = []  # a context, its browser and what drives both, while a module uses them


@contextlib.contextmanager
def browser(size: tuple[int, int] = (1400, 1000), dark: bool = False) -> Iterator[Any]:
    """A page of its own in a headless Chromium, which nothing was stored for; errors of the page are in `page.errors`.

    The pages of a module share a context: each new one takes half a second of CPU, and knows no compiled script.
    """
    from playwright.sync_api import expect, sync_playwright

    if not _chromium:
        driver = sync_playwright().start()
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS)
        context = chromium.new_context(permissions=["clipboard-write"])  # without a window it would be refused
        context.set_default_timeout(1000 * HANG_S)
        expect.set_options(timeout=1000 * HANG_S)
        _chromium[:] = [context, chromium, driver]
    context = _chromium[0]
    page = context.new_page()
    page.wait_for_function = functools.partial(page.wait_for_function, polling=_POLL_MS)
    try:
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        make_new(page, size, dark)
        yield page
    except Exception:
        Notebook.keep_state(page)
        raise
    finally:
        page.close()


def make_new(page: Any, size: tuple[int, int] = (1400, 1000), dark: bool = False) -> None:
    """A page that another test used is empty and as a new one: it has no errors, nothing is stored for it."""
    page.goto("about:blank")
    page.errors.clear()
    page.context.new_cdp_session(page).send("Storage.clearDataForOrigin", {"origin": "*", "storageTypes": "all"})
    page.mouse.move(0, 0)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.emulate_media(color_scheme="dark" if dark else "light", forced_colors="none")


def shoot(shown: Any, name: str, **options: Any) -> None:
    """Keeps a screenshot of a page or an element for people, where they ask for it: each takes 0.2 to 1 s of CPU."""
    if os.environ.get("PYFUNC_DEBUG_TEST_PICTURES"):
        ARTIFACTS.mkdir(exist_ok=True)
        shown.screenshot(path=str(ARTIFACTS / name), **options)


def close_browser() -> None:
    """Ends the browser after a module: the driver's event loop would be in the way of tests that run kernels."""
    if _chromium:
        _, chromium, driver = _chromium
        _chromium.clear()
        chromium.close()
        driver.stop()


class Notebook:
    """A notebook that is open in a page."""

    last: Notebook | None = None
    """The one that was opened last in this process: a test that fails says how it stands."""
    kept: str | None = None
    """How it stood when its page was closed as the test failed."""

    def __init__(self, page: Any, server: Server, name: str) -> None:
        self.page, self._server = page, server
        Notebook.last, Notebook.kept = self, None
        self._counts: dict[int, Any] = {}  # the number each cell had before its last run
        where = (
            f"lab/workspaces/t{time.monotonic_ns()}/tree/{name}?reset" if server.app == "lab" else f"notebooks/{name}"
        )
        page.goto(f"{server.url}/{where}")
        page.wait_for_selector(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook", timeout=1000 * HANG_S)

    def cells(self, sources: list[str]) -> None:
        """Puts new cells in the place of all: another test goes on with this page and this kernel."""
        self._counts.clear()
        self.page.evaluate(
            "(sources) => { const shared = window.jupyterapp.shell.currentWidget.content.model.sharedModel;"
            " shared.transact(() => { shared.deleteCellRange(0, shared.cells.length); shared.insertCells(0, sources.map("
            "(source) => ({ cell_type: 'code', metadata: {}, source, outputs: [], execution_count: null }))); }); }",
            sources,
        )
        self.page.wait_for_function(f"() => {_CELLS}.every((cell) => cell.isAttached)")

    def wait_kernel(self) -> None:
        """Waits until a kernel is connected and idle."""
        ready = (
            f"() => {{ const k = {_KERNEL}; return k && k.connectionStatus === 'connected' && k.status === 'idle'; }}"
        )
        self.page.wait_for_function(ready, timeout=1000 * HANG_S)

    def command(self, name: str, **arguments: Any) -> None:
        """Runs a command of JupyterLab without waiting for its end."""
        self.page.evaluate("([c, a]) => { window.jupyterapp.commands.execute(c, a); }", [name, arguments])

    def run(self, cell: int) -> None:
        """Runs one cell without waiting for its end."""
        self._counts[cell] = self.page.evaluate(f"(i) => {_CELLS}[i].model.executionCount", cell)
        # In one turn: an input box that is taken away gives the focus back to its cell, and makes that the active one.
        self.page.evaluate(
            "(i) => { const app = window.jupyterapp; app.shell.currentWidget.content.activeCellIndex = i;"
            " app.commands.execute('notebook:run-cell'); }",
            cell,
        )

    def wait(self, cell: int) -> None:
        """Waits until the last run of a cell has ended.

        A kernel's status says idle while a cell is blocked: its prompt does not. A cell that ran before has a number
        until its next run begins: the number must be a new one.
        """
        done = (
            f"([i, before]) => {{ const c = {_CELLS}[i].model; return c.executionCount && c.executionCount !== before"
            " && (c.executionState ?? 'idle') === 'idle'; }"
        )
        self.page.wait_for_function(done, arg=[cell, self._counts.get(cell)], timeout=1000 * HANG_S)

    def count(self, cell: int) -> int:
        """The number of a cell's last run."""
        return int(self.page.evaluate(f"(i) => {_CELLS}[i].model.executionCount", cell))

    def running(self, cell: int) -> bool:
        """Whether a cell runs now."""
        return bool(self.page.evaluate(f"(i) => {_CELLS}[i].model.executionState === 'running'", cell))

    def outputs(self, cell: int) -> list[dict[str, Any]]:
        """Outputs of a cell, as they are saved."""
        return list(self.page.evaluate(f"(i) => {_CELLS}[i].model.outputs.toJSON()", cell))

    def save(self) -> None:
        """Saves the notebook and waits for it."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.save()")

    def theme(self, name: str) -> None:
        """Switches JupyterLab's theme and waits for it."""
        self.page.evaluate("(t) => window.jupyterapp.commands.execute('apputils:change-theme', { theme: t })", name)
        self.page.wait_for_function("(t) => document.body.dataset.jpThemeName === t", arg=name)

    def shot(self, name: str) -> None:
        """Keeps a screenshot for people."""
        shoot(self.page, name)

    @classmethod
    def keep_state(cls, page: Any) -> None:
        """Keeps how the notebook of a page stands, as the page is about to be closed."""
        if cls.last is not None and cls.last.page is page:
            try:
                cls.kept = cls.last.state()
            except Exception as error:
                cls.kept = f"not known: {error}"

    def state(self) -> str:
        """How the kernel, the cells and the page stand, and what the server said last: for a test that fails."""
        told = self.page.wait_for_function(  # which ends, where the page does not answer
            f"() => {{ const k = {_KERNEL}; return {{ url: location.href, kernel: k && [k.connectionStatus, k.status],"
            " dialogs: [...document.querySelectorAll('.jp-Dialog')].map((one) => one.innerText),"
            f" cells: {_CELLS}.map((cell) => ({{ attached: cell.isAttached, count: cell.model.executionCount,"
            " state: cell.model.executionState, outputs: JSON.stringify(cell.model.outputs?.toJSON()).slice(0, 600),"
            " shown: cell.node.innerText.slice(-600) })) }; }",
            timeout=10_000,
        ).json_value()
        lines = [f"{name}: {value}" for name, value in told.items() if name != "cells"]
        lines += [f"cell {place}: {json.dumps(cell)}" for place, cell in enumerate(told["cells"])]
        log = self._server.log.read_text() if self._server.log.exists() else ""
        return "\n".join([*lines, f"page errors: {self.page.errors}", log[-2000:]])
