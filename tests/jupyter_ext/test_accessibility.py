"""Every view of the panel and the report holds WCAG 2.1 AA as far as an engine can tell, in light and dark."""

from __future__ import annotations

import pytest

from pyfunc_debug.api.recording import Recording
from pyfunc_debug.report import html
from tests.jupyter_ext.axe import violations
from tests.jupyter_ext.lab import browser
from tests.jupyter_ext.test_report_page import FINDINGS, PAGE_BYTES
from tests.jupyter_ext.test_vscode import STOP
from tests.jupyter_ext.vscode import Output
from tests.report import recordings


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = recordings.small(tmp_path_factory.mktemp("axe") / "train.pfrec")
    recordings.count_lines(path)
    return path


@pytest.fixture(scope="module")
def report(recording, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html, "MAX_BYTES", PAGE_BYTES)
        return html.write(recording, tmp_path_factory.mktemp("report") / "report.html", lambda: FINDINGS)


@pytest.mark.parametrize("dark", [True, pytest.param(False, marks=pytest.mark.more)])
def test_the_report(report, dark):
    with browser((1200, 900), dark) as page:
        page.goto(f"file://{report}")
        page.wait_for_selector("#pfd-report[data-ready]")
        page.wait_for_selector(".d-call .ttl")
        page.wait_for_selector(".calls tr[data-call]")
        assert violations(page, colours=dark) == []
        # A closer look: a value large, two calls side by side, the call as a test.
        look = page.locator(".look")
        page.locator(".d-call .vals button.lk").first.click()
        look.locator(".lhead").wait_for()
        found = violations(page, ".look", colours=dark)
        for deed, shown in (("Compare", "label input"), ("As a test", "pre.testfile")):
            page.locator(f".d-call [data-focus='deed-{deed}']").click()
            look.locator(shown).wait_for()
            found += violations(page, ".look", colours=dark)
        assert found == []


@pytest.mark.parametrize("kind", ["vscode-light", pytest.param("vscode-dark", marks=pytest.mark.more)])
def test_the_panel_with_each_tab_and_at_a_stop(recording, kind):
    with browser((966, 900)) as page:
        output = Output(page, Recording(str(recording)), kind)
        try:
            page.wait_for_selector(".pfd .calls tr[data-call]")
            page.wait_for_selector(".pfd .d-call .ttl")
            dark = "dark" in kind
            found = violations(page, colours=dark)
            for tab in ("source", "traces", "gil", "findings"):
                page.locator(f".pfd [data-tab={tab}]").click()
                page.wait_for_function("(t) => document.querySelector(`.pfd .d-${t}`).childElementCount", arg=tab)
                found += violations(page, f".pfd .d-{tab}", dark)
            page.keyboard.press("?")
            page.locator(".pfd .help").wait_for()
            found += violations(page, ".pfd .help", dark)
            page.keyboard.press("Escape")
            output.deliver(STOP)
            page.wait_for_selector(".pfd .d-stop .board:not([hidden])")
            found += violations(page, colours=dark)
            assert sorted(set(found)) == []

            # By keyboard alone: each table has its sort buttons and its rows in the order of Tab.
            for table in (".ledger", ".calls"):
                stops = page.evaluate(
                    "(t) => [...document.querySelectorAll(`${t} button, ${t} tr`)].filter((e) => e.tabIndex === 0)"
                    ".map((e) => e.localName)",
                    f".pfd {table}",
                )
                assert stops.count("button") >= 6
                assert stops.count("tr") == 1
                assert page.locator(f".pfd {table}").get_attribute("aria-label")
        finally:
            output.close()
