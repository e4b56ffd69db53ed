"""A test that fails in a browser says how its notebook stands."""

from __future__ import annotations

import pytest

from tests.jupyter_ext.lab import Notebook


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    notebook = Notebook.last
    if report.failed and notebook is not None:
        if not notebook.page.is_closed():
            Notebook.keep_state(notebook.page)
        if Notebook.kept is not None:
            report.sections.append(("notebook", Notebook.kept))
            Notebook.kept = None
    return report
