"""The report in a real browser, from a file: every view works without a kernel, by mouse and by keyboard."""

# ruff: noqa: E501 - JavaScript and findings are long lines
from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from playwright.sync_api import expect

from pyfunc_debug.records import Finding
from pyfunc_debug.report import html
from tests.jupyter_ext.lab import browser, make_new, shoot
from tests.report import recordings

FINDINGS = [
    Finding("body-raised", "error", 1, (301, 602), "`decode` raised 3 times <b>!</b>", "ds = ds.ignore_errors(log_warning=True)", recordings.FILE, 29),
    Finding("retrace", "warning", None, (), "`train_step` was traced twice.", "lr = tf.constant(lr)", recordings.FILE, recordings.line("@tf.function")),
]  # fmt: skip

PAGE_BYTES = 1_500_000
"""Room for a report that is opened again and again: 10 MB take a second each time. That of several processes has them."""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    path = recordings.small(folder / "train.pfrec")
    recordings.count_lines(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html, "MAX_BYTES", PAGE_BYTES)
        return html.write(path, folder / "report.html", lambda: FINDINGS)


@pytest.fixture(scope="module")
def tab():
    """The page that all tests use, one after the other."""
    with browser() as page:
        yield page


@contextlib.contextmanager
def opened(tab, report, size=(1200, 900), **scheme):
    """A report as it opens."""
    make_new(tab, size)
    tab.emulate_media(**scheme)
    requests = []

    def note(request):
        requests.append(request.url)

    tab.on("request", note)
    try:
        tab.goto(f"file://{report}")
        tab.wait_for_selector("#pfd-report[data-ready]")
        yield tab
        assert tab.errors == []
        assert all(url.startswith(("file:", "data:")) for url in requests), "no network"
    finally:
        tab.remove_listener("request", note)


@pytest.fixture
def page(tab, report):
    with opened(tab, report) as page:
        yield page


def test_all_views_are_there_and_the_numbers_are_the_recordings(page):
    top = page.locator(".top").inner_text()
    assert "1,980" in top
    assert "native" in top
    assert page.locator("h2").all_inner_texts() == [
        "Findings",
        "Ledger",
        "Graph traces",
        "Timeline",
        "Calls",
        "Call",
        "GIL",
        "Source",
    ]
    decode = page.locator('.ledger tr[data-key="n1"]')
    assert decode.locator(".c-calls").inner_text() == "880"
    assert "body-raised: `decode` raised 3 times" in decode.get_attribute("title"), "a mark is a finding of the doctor"
    assert "Calls of decode" in page.locator(".cs h3").inner_text()
    assert page.locator(".calls tr[data-call]").count() < 60, "only rows in sight exist"
    assert "for the GIL" in page.locator(".verdicts").inner_text()
    assert page.locator(".whatif").count() == 2, "two stages of tf.data"
    assert page.evaluate(FAINT) == [], "text has enough contrast"
    shoot(page, "report-light.png", full_page=True)


def test_a_long_wait_leads_to_its_call(page):
    link = page.locator(".worst tbody button").nth(2)
    number = link.inner_text().split("#")[1]
    link.click()
    page.wait_for_function("(n) => document.querySelector('.d-call .ttl')?.textContent.endsWith('#' + n)", arg=number)


def test_user_text_is_text(page):
    assert page.locator(".failure b").count() == 1, "the <b> of the message is no element"
    assert "<b>broken</b>" in page.locator(".failure p").first.inner_text()
    assert page.locator(".finds p b").count() == 0


def test_a_marked_row_says_why_and_a_graph_trace_what_would_have_avoided_it(page):
    assert page.locator(".why").inner_text().startswith("body-raised: decode raised 3 times <b>!</b>")
    page.locator('.ledger tr[data-key="n2"]').click()
    expect(page.locator(".why"), "nothing is marked, nothing is said").not_to_be_visible()
    page.locator('.ledger tr[data-key="f1"]').click()
    expect(page.locator(".why")).to_contain_text("traced twice. graph trace 2: lr, a Python number")
    rows = page.locator(".traces tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("to avoid it: pass lr as a tensor")
    expect(rows.nth(1)).to_contain_text("closest before: (x: float32[8, 64, 64, 3], lr=0.001)")
    rows.nth(1).locator("button").click()
    expect(page.locator('.ledger tr[aria-selected="true"]')).to_have_attribute("data-key", "n3")


def test_a_click_on_a_call_shows_it_everywhere(page):
    row = page.locator('.ledger tr[data-key="n3"]')
    row.click()
    expect(row).to_have_attribute("aria-selected", "true")
    page.wait_for_function("() => document.querySelector('.cs h3').textContent.includes('log_huber')")
    first = page.locator(".calls tr[data-call]").first
    first.click()
    number = first.get_attribute("data-call")
    page.wait_for_function("(n) => document.querySelector('.d-call .ttl')?.textContent.includes('#' + n)", arg=number)
    page.locator(".d-call .vals tbody tr").nth(7).wait_for()  # three inputs, an output, gradients in and out
    page.locator(".d-call figure canvas").nth(3).wait_for()
    page.locator(".d-call svg.hist").nth(2).wait_for()
    page.keyboard.press("]")
    page.wait_for_function("(n) => !document.querySelector('.d-call .ttl')?.textContent.includes('#' + n)", arg=number)


@pytest.mark.parametrize("key", ["data-call", "data-key"])
def test_a_press_counts_also_when_the_rows_are_made_again_before_it_ends(page, key):
    """As a recording that grows makes them again; the browser makes no click of such a press."""
    name = page.locator(f"tr[{key}][aria-selected='false']").nth(3).get_attribute(key)
    target = page.locator(f"tr[{key}='{name}']")
    target.scroll_into_view_if_needed()
    expect(target).to_have_attribute("aria-selected", "false")
    target.hover()
    page.mouse.down()
    target.evaluate(
        "(row) => row.parentElement.replaceChildren(...[...row.parentElement.children].map((one) => one.cloneNode(true)))"
    )
    page.mouse.up()
    expect(target).to_have_attribute("aria-selected", "true")


def test_lines_show_how_often_they_ran_and_what_they_printed(page):
    traced, body = recordings.line('print("train_step"'), recordings.line("x = x.astype")
    line = page.locator(f'.src li[data-line="{traced}"]')
    assert line.locator(".g").all_inner_texts() == ["2×", "–"]
    assert line.locator(".printed").inner_text() == "at trace printed train_step (8, 64, 64, 3) 0.001 +1"
    assert page.locator(f'.src li[data-line="{body}"] .g').all_inner_texts() == ["", "880×"]
    printed = page.locator(f'.src li[data-line="{body + 2}"] .printed')
    assert printed.inner_text() == "call #2 printed <b>clipped</b> 2 +4"
    printed.locator("button").click()
    page.wait_for_function("() => document.querySelector('.d-call .ttl')?.textContent.endsWith('#2')")


def test_tables_work_by_keyboard(page):
    page.locator('.ledger tr[tabindex="0"]').focus()
    page.keyboard.press("Home")
    page.wait_for_function("() => document.activeElement.dataset.key === 'f1'")
    page.keyboard.press("ArrowLeft")
    expect(page.locator('.ledger tr[data-key="n3"]'), "folded").to_have_count(0)
    page.keyboard.press("ArrowRight")
    page.locator('.ledger tr[data-key="n3"]').wait_for()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => document.activeElement.dataset.key === 'n3'")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.dataset.call !== undefined")
    page.keyboard.press("End")
    last = page.evaluate("() => document.querySelector('.calls').getAttribute('aria-rowcount')")
    page.wait_for_function("(n) => document.activeElement.getAttribute('aria-rowindex') === n", arg=last)
    page.keyboard.press("/")
    page.keyboard.type("aug")
    expect(page.locator(".ledger tbody tr").last).to_contain_text("augment")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator(".help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".help")).not_to_be_visible()


def test_sorting_a_column_sorts_the_calls(page):
    page.locator('.calls [data-column="wait"]').click()
    page.wait_for_function(
        "() => document.querySelector('.calls th[aria-sort]')?.getAttribute('aria-sort') === 'descending'"
    )
    page.wait_for_function(
        """() => {
          const waits = [...document.querySelectorAll('.calls tr[data-call] .c-wait')].slice(0, 20).map((e) => Number(e.textContent));
          return waits.length === 20 && waits.every((wait, i) => !i || wait <= waits[i - 1]);
        }"""
    )


def test_the_timeline_zooms_and_selects(page):
    lanes = page.locator("canvas.lanes")
    label = lanes.get_attribute("aria-label")
    lanes.focus()
    for _ in range(25):
        page.keyboard.press("w")
    page.wait_for_function("(l) => document.querySelector('canvas.lanes').getAttribute('aria-label') !== l", arg=label)
    page.locator(".calls tr[data-call]").first.click()
    label = lanes.get_attribute("aria-label")
    page.keyboard.press("f")
    page.wait_for_function("(l) => document.querySelector('canvas.lanes').getAttribute('aria-label') !== l", arg=label)
    page.evaluate(
        """() => {
          window.titles = new Set();
          const note = () => window.titles.add(document.querySelector('.d-call .ttl')?.textContent);
          note();
          new MutationObserver(note).observe(document.querySelector('.d-call'), { childList: true, subtree: true, characterData: true });
        }"""
    )
    box = lanes.bounding_box()
    # The selected call is in the middle of its lane; one of its neighbours is beside it.
    for share in (0.2, 0.3, 0.7, 0.8, 0.9):
        for lane in range(1, 5):
            page.mouse.click(box["x"] + 70 + (box["width"] - 78) * share, box["y"] + lane * 26 + 18)
    page.wait_for_function("() => window.titles.size > 1")
    shoot(page, "report-zoomed.png")


FAINT = """() => {
    const lum = (c) => { const [r, g, b] = c.map((x) => x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
    const rgb = (t) => { const n = t.match(/[\\d.]+/g).map(Number); const k = t.startsWith('color(') ? 1 : 255; return n.slice(0, 3).map((x) => x / k); };
    const bg = lum(rgb(getComputedStyle(document.querySelector('.pfd')).backgroundColor));
    const bad = [];
    for (const e of document.querySelectorAll('.pfd td, .pfd th, .pfd button, .pfd p, .pfd small, .pfd code, .pfd h2, .pfd .dim')) {
      if (!e.textContent.trim() || e.disabled || !e.checkVisibility() || e.closest('[aria-disabled], .sev, .blame, figure')) continue;
      const l = lum(rgb(getComputedStyle(e).color));
      const ratio = (Math.max(l, bg) + .05) / (Math.min(l, bg) + .05);
      if (ratio < 4.5) bad.push([e.className, e.textContent.slice(0, 30), ratio]);
    }
    return bad; }"""


def test_dark_narrow_and_forced_colours_can_be_read(tab, report):
    for name, size, dark in (("report-dark.png", (1200, 900), True), ("report-narrow.png", (480, 900), False)):
        with opened(tab, report, size, color_scheme="dark" if dark else "light") as page:
            assert page.locator(".pfd").get_attribute("data-theme") == ("dark" if dark else "light")
            assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), "no sideways scrolling"
            assert page.evaluate(FAINT) == []
            shoot(page, name, full_page=True)
    with opened(tab, report, forced_colors="active") as page:
        shoot(page, "report-forced-colors.png")


def test_without_scripts_the_plain_table_is_there(tab, report):
    text = Path(report).read_text(encoding="utf-8")
    make_new(tab)
    tab.set_content(text.replace('<script type="module">', '<script type="off">'))
    assert "augment" in tab.locator("#pfd-plain").inner_text()


def test_a_broken_report_says_so(tab, report, tmp_path):
    text = Path(report).read_text(encoding="utf-8")
    start = text.index('"pfd-recording">') + len('"pfd-recording">')
    broken = tmp_path / "broken.html"
    broken.write_text(text[: start + 100] + "AAAA" + text[start + 104 :], encoding="utf-8")
    make_new(tab)
    tab.goto(f"file://{broken}")
    tab.wait_for_function("() => document.getElementById('pfd-report').textContent.includes('cannot be drawn')")
    assert "augment" in tab.locator("#pfd-plain").inner_text()


def test_a_call_that_was_changed_by_hand_says_so(tab, tmp_path):
    import tensorflow as tf

    import pyfunc_debug as pfd

    def scale(x, by):
        y = x * by
        return y

    function = tf.function(lambda x: tf.py_function(scale, [x, 3.0], tf.float32))
    with pfd.record(tmp_path / "a.pfrec", gil=False) as recording:
        function(tf.constant(1.0))
        rule = pfd.break_on("scale", once=True)
        with pfd.answers("by = by + 1", "n", "n", "__return__ = y * 10", "c"):
            assert float(function(tf.constant(1.0))) == 40.0
        rule.remove()
        function(tf.constant(1.0))
    with opened(tab, recording.to_html(tmp_path / "a.html")) as page:
        page.locator('.calls tr[data-call="2"]').click()
        page.locator(".d-call .ttl", has_text="#2").wait_for()
        hand = page.locator(".d-call .hand")
        assert hand.inner_text() == (
            "Changed by hand at a stop: by, the return value. What follows is not the program's own doing."
        )
        assert hand.locator("code").all_inner_texts() == ["by"]
        shoot(page.locator(".rs", has=page.locator(".d-call")), "report-changed-by-hand.png")
        for call in ("1", "3"):
            page.locator(f'.calls tr[data-call="{call}"]').click()
            page.locator(".d-call .ttl", has_text=f"#{call}").wait_for()
            expect(hand).to_have_count(0)


def test_logged_numbers_are_a_line_over_the_calls_and_kept_locals_are_shown(tab, tmp_path):
    import tensorflow as tf

    import pyfunc_debug as pfd

    def scale_all_of_the_values_of_a_batch(x):
        doubled = x * 2
        return doubled

    function = tf.function(lambda x: tf.py_function(scale_all_of_the_values_of_a_batch, [x], tf.float32))
    rule = pfd.break_on("scale*", when="after", log="x + 1", keep="locals")
    with rule_removed(rule), pfd.record(tmp_path / "a.pfrec", gil=False) as recording:
        for number in range(5):
            function(tf.constant(float(number)))
    with opened(tab, recording.to_html(tmp_path / "a.html")) as page:
        page.locator('.calls tr[data-call="3"]').click()
        page.locator(".d-call .ttl", has_text="#3").wait_for()
        assert page.locator(".noticed caption").all_inner_texts() == ["Logged after the body", "Locals after the body"]
        logged, kept = page.locator(".noticed").all()
        assert logged.locator("th").all_inner_texts() == ["x + 1"]
        assert logged.locator(".spark").get_attribute("aria-label") == "over 5 calls, #1 to #5: 1.00 to 5.00"
        assert logged.locator(".scale").all_inner_texts() == ["1.00 to 5.00, 5 calls"]
        assert "doubled" in kept.locator("th").all_inner_texts()
        title, count = (page.locator(f".cs .sh {part}").bounding_box() for part in ("h3", "h3 + small"))
        assert title["x"] + title["width"] <= count["x"], "a long name leaves room for what stands beside it"


@contextlib.contextmanager
def rule_removed(rule):
    """The breakpoint, for a `with` block."""
    try:
        yield rule
    finally:
        rule.remove()


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    folder = tmp_path_factory.mktemp("together")
    paths = recordings.workers(folder, 3)
    return html.write_together(paths, folder / "report.html", lambda path: FINDINGS if "worker-2" in path else [])


def test_several_processes_are_one_report(tab, together):
    with opened(tab, together) as page:
        rows = page.locator(".procs tbody tr")
        assert rows.count() == 3
        assert "pid 4712" in rows.nth(1).inner_text()
        assert page.locator('.together .ledger tr:has-text("decode") .c-calls').inner_text() == "1,920"
        page.locator('.together .ledger tr:has-text("decode")').click()
        page.locator(".byproc tbody tr").nth(2).wait_for()
        assert [row.split()[:2] for row in page.locator(".byproc tbody tr").all_inner_texts()] == [
            ["worker-0", "480"],
            ["worker-1", "640"],
            ["worker-2", "800"],
        ]
        shoot(page, "report-together.png", full_page=True)
        # From the row of one process to that row in its own report.
        page.locator(".byproc button").nth(1).click()
        own = page.locator('.own[aria-label="worker-1"]')
        own.locator(".cs h3", has_text="decode").wait_for()
        expect(page.locator(".together")).not_to_be_visible()
        assert own.locator('.ledger tr[aria-selected="true"] .c-calls').inner_text() == "640"
        # From a finding to its call, and by keyboard back.
        page.locator('[role="tab"]').first.click()
        page.locator(".together .who button").first.click()
        page.wait_for_function(
            "() => [...document.querySelectorAll('.d-call .ttl')].some((e) => e.checkVisibility() && e.textContent.includes('#301'))"
        )
        expect(page.locator('[role="tab"][aria-selected="true"]').first).to_have_text("worker-2")
        page.locator('[role="tab"][data-process="2"]').focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator(".together")).to_be_visible()


def test_many_processes_fit_a_narrow_page(tab, together):
    with opened(tab, together, (430, 900), color_scheme="dark") as page:
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), "no sideways scrolling"
        shoot(page, "report-together-narrow.png", full_page=True)


def test_values_are_looked_at_and_calls_compared_without_a_kernel(page):
    page.evaluate("document.querySelector('#pfd-report').panel.show({ call: 2 })")
    expect(page.locator(".d-call .ttl")).to_contain_text("#2")
    page.locator(".imgs canvas.opens").first.click()
    look = page.locator(".look")
    expect(look.locator("canvas")).to_have_count(1)
    look.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Compare", exact=True).click()
    look.get_by_label("Number of the other call").fill("4")
    look.get_by_role("button", name="Compare", exact=True).click()
    expect(look.locator(".sides tbody tr")).to_have_count(2)
    assert page.get_by_role("button", name="Replay").count() == 0, "there is no kernel"
    page.locator('.ledger tr[data-key="n3"]').click()
    page.locator(".calls tr[data-call]").first.click()
    expect(page.locator(".vals .spark").first).to_be_visible()
