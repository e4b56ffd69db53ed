"""What is said to a person at a terminal is broken between words there, and nowhere else."""

from __future__ import annotations

import fcntl
import os
import struct
import termios

from pyfunc_debug.program.printable import columns_of, folded

SENTENCE = "breakpoint 1 (before nobody): 0 hits because no node of that name was called so far (there are body, map-2)"


def test_a_sentence_is_broken_between_words_at_a_terminal_and_stays_in_one_line_in_a_file(tmp_path):
    ours, theirs = os.openpty()
    with os.fdopen(ours), open(theirs, "w") as terminal, open(tmp_path / "out.txt", "w") as file:
        assert columns_of(terminal) is None, "it has not said yet"
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
        lines = folded(SENTENCE, columns_of(terminal)).split("\n")
        assert max(map(len, lines)) <= 40
        assert " ".join(line.strip() for line in lines) == SENTENCE
        assert "map-2)" in lines[-1], "not at a hyphen"
        assert folded(SENTENCE, columns_of(file)) == SENTENCE
    assert columns_of(file) is None, "closed"
