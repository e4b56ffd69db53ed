"""Tab in a shell, as argcomplete asks for it: commands, options, recordings, and names that a recording has."""

from __future__ import annotations

import io

import pytest

from pyfunc_debug.cli import make_parser
from pyfunc_debug.cli.completion import complete
from tests.report import recordings

argcomplete = pytest.importorskip("argcomplete")


@pytest.fixture
def completed(tmp_path, monkeypatch):
    """What may come after a line."""
    recordings.small(tmp_path / "train.pfrec", steps=6)
    (tmp_path / "notes.txt").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("_ARGCOMPLETE", "1")
    # It would open descriptor 9 for its own messages, which is pytest's here, and close it with them.
    monkeypatch.setattr(argcomplete.CompletionFinder, "_init_debug_stream", lambda self: None)
    monkeypatch.setenv("_ARGCOMPLETE_IFS", "\n")

    def ask(line):
        line = f"pyfunc-debug {line}"
        monkeypatch.setenv("COMP_LINE", line)
        monkeypatch.setenv("COMP_POINT", str(len(line)))
        out = io.TextIOWrapper(io.BytesIO())
        with pytest.raises(SystemExit) as end:
            complete(make_parser(), output_stream=out, exit_method=lambda code: (_ for _ in ()).throw(SystemExit(code)))
        assert end.value.code == 0
        return {one.strip() for one in out.buffer.getvalue().decode().split("\n") if one}

    return ask


def test_a_shell_completes_commands_files_and_names(completed):
    assert completed("sh") == {"show"}
    assert "--node" in completed("show --no")
    assert completed("show ") >= {"train.pfrec"}
    assert "notes.txt" not in completed("show ")
    assert completed("show train.pfrec --node aug") == completed("show --node aug") == {"augment"}
    assert "train_step" in completed("show train.pfrec --function tr")
    assert completed("show nope.pfrec --node aug") == set()
    assert completed("export train.pfrec --format pa") == {"parquet"}
