"""VS Code as a panel sees it: a page with the variables, classes and host rules of a notebook's output webview.

Not VS Code itself: its Jupyter extension cannot be had here. What the page is made of was read out of VS Code 1.100
(code-server 4.100.3 from npm, its own notebook editor) with the panel in one of its outputs: `vscode_themes.json` holds
what <html style> and <body> had under its four built-in themes. What the Jupyter extension adds is from its source
(microsoft/vscode-jupyter, 2026-07): its widget manager imports @jupyter-widgets/controls/css/labvariables.css, so
JupyterLab's light variables are in :root under every theme, and its renderer makes the output white.
"""

# ruff: noqa: E501 - style sheets and JavaScript are long lines
from __future__ import annotations

import base64
import html
import json
from importlib import resources
from pathlib import Path
from typing import Any

from jupyter_ext.channel import Channel
from jupyter_ext.display import static_forms
from tests.jupyter_ext.test_channel import Widget
from tests.limits import HANG_S

THEMES: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("vscode_themes.json").read_text("utf-8"))
_ORIGIN = "https://vscode.invalid"
_HOST = """
html { scrollbar-color: var(--vscode-scrollbarSlider-background) var(--vscode-editor-background); background: var(--vscode-editor-background); }
body { overscroll-behavior-x: none; color: var(--vscode-editor-foreground); font: var(--vscode-font-weight) var(--vscode-font-size) var(--vscode-font-family); margin: 0; padding: 0 20px; }
a, a code { color: var(--vscode-textLink-foreground); }
a:focus, input:focus, select:focus, textarea:focus { outline: 1px solid -webkit-focus-ring-color; outline-offset: -1px; }
code { font-family: monospace; color: var(--vscode-textPreformat-foreground); background-color: var(--vscode-textPreformat-background); padding: 1px 3px; border-radius: 4px; }
kbd { background-color: var(--vscode-keybindingLabel-background); color: var(--vscode-keybindingLabel-foreground); border: 1px solid var(--vscode-keybindingLabel-border); border-bottom-color: var(--vscode-keybindingLabel-bottomBorder); border-radius: 3px; box-shadow: inset 0 -1px 0 var(--vscode-widget-shadow); padding: 1px 3px; }
table, thead, tr, th, td, tbody { border: none; border-spacing: 0; border-collapse: collapse; }
table, th, tr { vertical-align: middle; text-align: right; }
thead { font-weight: bold; background-color: rgba(130, 130, 130, 0.16); }
th, td { padding: 4px 8px; }
tr:nth-child(even) { background-color: rgba(130, 130, 130, 0.08); }
.output { box-sizing: border-box; width: 100%; padding: 8px; }
.output > div { box-sizing: border-box; padding: 0 8px; border: 1px solid transparent; }
"""
_JUPYTER_EXTENSION = """
:root { --jp-layout-color0: white; --jp-layout-color1: white; --jp-layout-color2: #eee; --jp-ui-font-color0: #000; --jp-ui-font-color1: rgba(0, 0, 0, 0.8); --jp-ui-font-color2: rgba(0, 0, 0, 0.5); --jp-border-color1: #9e9e9e; --jp-border-color2: #e0e0e0; --jp-brand-color1: #2196f3; --jp-ui-font-size1: 13px; --jp-ui-font-family: 'Helvetica Neue', Helvetica, Arial, sans-serif; --jp-code-font-family: monospace; }
.cell-output-ipywidget-background { background: white !important; }
"""
_SCRIPT = """
window.pfdTheme = (theme) => {
  document.documentElement.style.cssText = Object.entries(theme.variables).map(([name, value]) => `${name}: ${value}`).join(';');
  document.body.className = theme.body;
  document.body.dataset.vscodeThemeKind = theme.kind;
  document.body.dataset.vscodeThemeId = theme.id;
};
const subscribers = new Set();
const deliver = (content, buffers = []) => {
  const views = buffers.map((text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer));
  for (const subscriber of subscribers) subscriber(content, views);
};
window.pfdDeliver = deliver;
const model = {
  get: (name) => (name === 'panel_id' ? 'vscode' : {}),
  on: (event, callback) => event === 'msg:custom' && subscribers.add(callback),
  off: (event, callback) => subscribers.delete(callback),
  send: async (content) => { const [reply, buffers] = JSON.parse(await window.pfdAsk(JSON.stringify(content))); if (reply) deliver(reply, buffers); },
};
const { render } = await import('./panel.js');
await render({ model, el: document.getElementById('widget') });
"""


class _Page(Widget):
    """The kernel's half of the widget, which keeps the buffers too."""

    def send(self, content, buffers=None):
        self.sent.put((content, [base64.b64encode(bytes(buffer)).decode() for buffer in buffers or []]))


class Output:
    """An output of a notebook in VS Code, with the panel of a recording, and the static form under it.

    Args:
      page: A page of a browser.
      recording: What the panel shows; a real `Channel` answers it.
      kind: VS Code's name of the theme's kind.
      alone: Whether the static form is not beside its panel: of a saved notebook.
    """

    def __init__(self, page: Any, recording: Any, kind: str, *, alone: bool = False) -> None:
        self.page = page
        self._kind = kind
        self._closed = False
        self._channel = Channel()
        self._view = self._channel.expect(recording)
        self._view.live = False
        self._widget = _Page()
        self._channel.attach(self._view, self._widget)
        name, found = "saved" if alone else "vscode", recording.findings(front="notebook")
        self._static = static_forms(recording, name, found)["text/html"]
        page.expose_function("pfdAsk", self._ask)
        page.route(f"{_ORIGIN}/**", self._serve)
        page.goto(f"{_ORIGIN}/")
        page.wait_for_selector(".pfd .ledger tbody tr")

    def close(self) -> None:
        self._closed = True  # a page that goes may still ask: nobody answers any more
        self._channel.close()

    def theme(self, kind: str) -> None:
        """Switches the theme as VS Code does: <html style> and the <body>'s class and data, nothing else."""
        self.page.evaluate("(theme) => window.pfdTheme(theme)", {**THEMES[kind], "kind": kind})

    def deliver(self, content: dict[str, Any]) -> None:
        """Sends the panel a message, as the kernel would."""
        self.page.evaluate("(content) => window.pfdDeliver(content)", content)

    def _ask(self, text: str) -> str:
        content = json.loads(text)
        if self._closed or content.get("type") != "request":
            return "[null, []]"
        self._channel.receive(self._view, content)
        return json.dumps(self._widget.sent.get(timeout=HANG_S))

    def _serve(self, route: Any) -> None:
        name = route.request.url.removeprefix(f"{_ORIGIN}/")
        if name == "":
            theme = THEMES[self._kind]
            style = html.escape("; ".join(f"{name}: {value}" for name, value in theme["variables"].items()))
            body = (
                f'<!doctype html><html lang="en" style="{style}"><head><meta charset="utf-8"><style>{_HOST}</style>'
                f"<style>{_JUPYTER_EXTENSION}</style><style>{_bundle('panel.css')}</style></head>"
                f'<body class="{theme["body"]}" data-vscode-theme-kind="{self._kind}" data-vscode-theme-id="{theme["id"]}">'
                '<div id="container"><div class="cell_container"><div class="output_container">'
                '<div class="output cell-output-ipywidget-background"><div class="jupyter-widgets" id="widget"></div></div></div>'
                f'<div class="output_container"><div class="output"><div id="static">{self._static}</div></div></div>'
                f'</div></div><script type="module">{_SCRIPT}</script></body></html>'
            )
            route.fulfill(content_type="text/html; charset=utf-8", body=body)
        elif name == "panel.js":
            route.fulfill(content_type="text/javascript; charset=utf-8", body=_bundle(name))
        else:
            route.abort()


def _bundle(name: str) -> str:
    return resources.files("jupyter_ext").joinpath("static", name).read_text(encoding="utf-8")
