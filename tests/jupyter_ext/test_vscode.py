"""The panel and the static form under VS Code's themes, in a page made like its notebook outputs (see vscode.py)."""

# ruff: noqa: E501 - JavaScript is long lines
from __future__ import annotations

import contextlib

import pytest

from pyfunc_debug.api.recording import Recording
from tests.jupyter_ext.lab import browser, shoot
from tests.jupyter_ext.vscode import THEMES, Output
from tests.report import recordings

KINDS = list(THEMES)
MOST = [pytest.param(kind, marks=[pytest.mark.more] * (place % 2)) for place, kind in enumerate(KINDS)]
STOP = {
    "type": "stop", "ping": 0, "way": "control", "now_ns": 9_000_000_000, "home": None,
    "stop": {
        "id": 1, "node": "decode", "call": 301, "thread": "TF-2", "why": "before", "rule": "decode", "since_ns": 1_000_000_000,
        "policy": "wait", "seq": 1, "index": 0, "prompt": "(Pdb) ", "starving": "",
        "source": [{"line": 7 + i, "text": text, "current": i == 1} for i, text in enumerate(recordings.TRAIN.splitlines()[6:11])],
        "frames": [{"function": "decode", "file": recordings.FILE, "line": 8}],
        "locals": [{"name": "path", "type": "EagerTensor", "text": "b'cat.jpg'"}],
        "console": ["> decode()\n"],
    },
    "waiting": [{"id": 2, "node": "decode", "call": 302, "thread": "TF-3", "why": "before", "rule": "decode", "since_ns": 2_000_000_000, "policy": "wait"}],
}  # fmt: skip
COLOURS = """
  const parse = (text) => { const n = (text.match(/[\\d.]+(?:e-?\\d+)?/g) ?? []).map(Number); const k = text.startsWith('color(') ? 1 : 255; return [n[0] / k, n[1] / k, n[2] / k, n[3] ?? 1]; };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const linear = (x) => x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4;
  const luminance = (c) => .2126 * linear(c[0]) + .7152 * linear(c[1]) + .0722 * linear(c[2]);
  const contrast = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
  const grounds = new Map([[null, [1, 1, 1, 1]]]);
  const ground = (e) => { if (!grounds.has(e)) grounds.set(e, over(parse(getComputedStyle(e).backgroundColor), ground(e.parentElement))); return grounds.get(e); };
"""
FAINT_TEXT = (
    "(root) => {"
    + COLOURS
    + """
  const bad = [];
  for (const e of document.querySelectorAll(`${root}, ${root} *`)) {
    const own = e.matches('input') ? e.value || e.placeholder : [...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data).join('').trim();
    if (!own || e.matches('option, title') || e.disabled || !e.checkVisibility({ visibilityProperty: true }) || e.closest('[aria-disabled=true]')) continue;
    const under = ground(e);
    const ratio = contrast(over(parse(getComputedStyle(e).color), under), under);
    if (!(ratio >= 4.5)) bad.push([e.tagName, e.className, own.slice(0, 30), +ratio.toFixed(2)]);
    if (e.matches('input')) {
      const hint = getComputedStyle(e, '::placeholder');
      if (e.placeholder && !(contrast(over(parse(hint.color), under), under) >= 4.5)) bad.push(['placeholder', e.className]);
    }
  }
  return bad; }"""
)
FAINT_GRAPHICS = (
    "() => {"
    + COLOURS
    + """
  const panel = document.querySelector('.pfd');
  const under = ground(panel);
  const probe = panel.appendChild(document.createElement('span'));
  const token = (name) => { probe.style.color = `var(${name})`; return parse(getComputedStyle(probe).color); };
  // Released and stop are drawn with an edge or stripes of a darker colour.
  const faint = ['--k-trace', '--k-run', '--k-held', '--k-wait', '--k-gradient', '--c-focus', '--c-tab', '--c-link'].filter((name) => !(contrast(token(name), under) >= 3));
  if (document.body.className.includes('high-contrast')) faint.push(...['--c-line', '--c-btn-line', '--c-field-line', '--c-edge', '--c-line2'].filter((name) => !(contrast(token(name), under) >= 3)));
  probe.remove();
  const edges = [...document.querySelectorAll('.swatch.k-released, .swatch.k-stop, .chip')].filter((e) => e.checkVisibility());
  for (const e of edges) if (!(contrast(parse(getComputedStyle(e).borderLeftColor), under) >= 3)) faint.push(e.className);
  return faint; }"""
)
# What can be seen: every colour of every element, and every pixel of the canvases.
CANVASES = "[...document.querySelectorAll('.pfd canvas')].map((c) => c.width ? c.toDataURL() : '')"
SEEN = """() => {
  const properties = ['color', 'backgroundColor', 'backgroundImage', 'borderTopColor', 'borderLeftColor', 'boxShadow', 'outlineColor', 'fill', 'stroke', 'caretColor', 'colorScheme'];
  const elements = [document.querySelector('.output'), document.querySelector('.pfd'), ...document.querySelectorAll('.pfd *')];
  return {
    styles: elements.map((e) => { const style = getComputedStyle(e); return `${e.tagName}.${e.className} ${properties.map((p) => style[p]).join(' ')}`; }),
    canvases: CANVASES,
  }; }""".replace("CANVASES", CANVASES)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    recording = Recording(recordings.small(tmp_path_factory.mktemp("vscode") / "train.pfrec"))
    yield recording
    recording.close()


@contextlib.contextmanager
def opened(recording, kind, size=(1140, 900), **options):
    """An output of that width less the page's own margins, with a call selected."""
    # The system's scheme is the other one: VS Code's theme decides alone.
    with browser(size, dark="light" in kind) as page:
        output = Output(page, recording, kind, **options)
        try:
            yield output
            assert page.errors == []
        finally:
            output.close()


def select(page):
    page.locator('.ledger tr[data-key="n3"]').click()
    page.locator('.calls tr[data-call="53"], .calls tr[data-call]').nth(2).dispatch_event("click")
    page.wait_for_selector(".d-call .vals tbody tr")
    page.wait_for_selector(".d-call figure canvas")
    page.mouse.move(0, 0)
    page.evaluate("() => document.activeElement.blur()")


@pytest.mark.parametrize("kind", MOST)
@pytest.mark.parametrize("width", [1100, 420])
def test_everything_can_be_read(recording, kind, width):
    with opened(recording, kind, (width + 40, 900)) as output:
        page = output.page
        assert not page.locator("#static table").is_visible(), "the static form is not beside its panel"
        theme = THEMES[kind]["variables"]
        assert page.locator(".pfd").get_attribute("data-theme") == ("light" if "light" in kind else "dark")
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), "no sideways scrolling"
        ground = "(e) => getComputedStyle(e).backgroundColor"
        assert _hex(page.locator(".pfd").evaluate(ground)) == theme["--vscode-editor-background"], "JupyterLab's white"
        assert page.locator(".output").first.evaluate(ground) == "rgba(0, 0, 0, 0)", "a white frame round the panel"
        family = page.locator(".pfd").evaluate("(e) => getComputedStyle(e).fontFamily")
        assert family.replace('"', "") == theme["--vscode-font-family"].replace('"', "")
        select(page)
        room = "() => document.querySelector('.pfd').getBoundingClientRect().right - document.querySelector('.vals').getBoundingClientRect().right"
        assert page.evaluate(room) >= 0, "the values are not cut"
        name = kind.removeprefix("vscode-")
        output.deliver(STOP)
        page.locator(".chip").wait_for()
        for tab in ("call", "source", "traces", "gil", "findings", "stop"):
            page.locator(f'[data-tab="{tab}"]').click()
            page.wait_for_function(
                "(tab) => document.querySelector(`.d-${tab}, .detail:not([hidden])`)?.textContent.length > 20", arg=tab
            )
            assert page.evaluate(FAINT_TEXT, ".pfd") == [], tab
            shoot(page, f"vscode-{name}-{width}-{tab}.png")
        assert page.evaluate(FAINT_GRAPHICS) == []
        page.keyboard.press("Escape")
        page.locator(".filter input").focus()
        page.keyboard.type("dec")
        assert page.evaluate(FAINT_TEXT, ".filter") == []
        for row in ('.ledger tr[data-key="n1"]', ".d-stop .btn:visible"):
            page.locator(row).first.hover()
            assert page.evaluate(FAINT_TEXT, ".pfd") == [], f"{row} under the pointer"


def test_no_colour_of_the_theme_before_stays(recording):
    fresh = {}
    for kind in KINDS:
        with opened(recording, kind) as output:
            select(output.page)
            fresh[kind] = _settled(output.page)
    assert len({seen["canvases"][0] for seen in fresh.values()}) == 4, "the canvases do show the theme"
    with opened(recording, KINDS[0]) as output:
        page = output.page
        select(page)
        for kind in [*KINDS[1:], KINDS[0], KINDS[3], KINDS[2]]:
            output.theme(kind)
            page.wait_for_function(
                f"(fresh) => JSON.stringify({CANVASES}) === JSON.stringify(fresh)", arg=fresh[kind]["canvases"]
            )
            assert page.evaluate(SEEN)["styles"] == fresh[kind]["styles"], kind


@pytest.mark.parametrize("kind", MOST)
def test_the_static_form_can_be_read(recording, kind):
    with opened(recording, kind, alone=True) as output:
        assert output.page.locator("#static table").is_visible()
        assert output.page.locator("#static pre").count(), "what is to be pasted stands by itself"
        assert output.page.evaluate(FAINT_TEXT, "#static") == []
        shoot(output.page.locator("#static"), f"{kind}-static.png")


def _settled(page):
    """What is seen when two looks agree."""
    page.wait_for_function(
        f"() => {{ const now = JSON.stringify(({SEEN})()); const same = window.pfdBefore === now; window.pfdBefore = now; return same; }}",
        polling=400,
    )
    return page.evaluate(SEEN)


def _hex(colour):
    numbers = [int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    return "#" + "".join(f"{number:02x}" for number in numbers)
