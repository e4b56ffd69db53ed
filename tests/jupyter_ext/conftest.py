"""A test that fails in a browser says how its notebook stands."""

from __future__ import annotations

import pytest

from tests.jupyter_ext.lab import Notebook


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    notebook = Notebook.last
    if report.failed and notebook is not None and not notebook.page.is_closed():
        try:
            report.sections.append(("notebook", notebook.state()))
        except Exception as error:
            report.sections.append(("notebook", f"not known: {error}"))
    return report
