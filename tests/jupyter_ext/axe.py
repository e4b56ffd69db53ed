"""Deque's accessibility engine in a page (axe-core, of the front end's own development packages)."""

# ruff: noqa: E501 - JavaScript is long lines
from __future__ import annotations

import subprocess
from typing import Any

from tests.jupyter_ext.lab import ROOT

_FRONTEND = ROOT / "jupyter_ext" / "frontend"
_ENGINE = _FRONTEND / "node_modules" / "axe-core" / "axe.min.js"
_COLOURS = ["color-contrast", "link-in-text-block"]
_RUN = """async ([root, only]) => {
  // Colours under a canvas or a gradient cannot be computed by the engine: what it is unsure of is not a violation.
  const found = await axe.run(root, { resultTypes: ['violations'], runOnly: only ?? ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] });
  return found.violations.flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.target} ${node.html.slice(0, 120)} | ${node.failureSummary.split('\\n').slice(1, 3).join(' ')}`));
}"""


def violations(page: Any, root: str = ".pfd", colours: bool = False) -> list[str]:
    """What breaks WCAG 2.1, levels A and AA, inside an element of a page: one line each.

    With `colours`: of the rules about colours only, all that another theme of the same page can break.
    """
    if not _ENGINE.exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=_FRONTEND, check=True)
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_ENGINE.read_text(encoding="utf-8"))  # a page's policy may forbid a <script>
    return list(page.evaluate(_RUN, [root, _COLOURS if colours else None]))
