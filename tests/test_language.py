"""Texts are in plain modern English: words and forms that a reader stumbles over do not come back."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
STUMBLES = re.compile(
    r"\b(anew|upon|hence|thereof|whereby|thereby|herein|whence|lest|nay|ought|shall|hears? of|mend(s|ed|ing)?|so many"
    r"|(is|are|was|were) told|be told (?!from|apart))\b"
    r"|(?<!there )(?<!here )\b(is|are|was|were) no (?!longer\b|more\b|less\b|later\b|earlier\b|faster\b)[a-z]",
    re.IGNORECASE,
)
TEXTS = ["README.md", "docs/*.md", "docs/*.py", "pyfunc_debug/**/*.py", "jupyter_ext/*.py"]


def stumbles(text: str) -> list[str]:
    """What a reader stumbles over, each as it is written."""
    return [match[0] for match in STUMBLES.finditer(re.sub(r"\s+", " ", text))]


def test_texts_are_in_modern_english():
    files = [file for pattern in TEXTS for file in sorted(ROOT.glob(pattern)) if file.name != "reference.md"]
    assert len(files) > 200
    found = {str(file.relative_to(ROOT)): stumbles(file.read_text(encoding="utf-8")) for file in files}
    assert {file: words for file, words in found.items() if words} == {}


def test_what_is_common_english_is_left_alone():
    assert stumbles("There is no such node: it is no longer there. Whether there are no calls is not known.") == []
    assert stumbles("It is no tf.function, and cannot wait so many seconds: the user is told.") == [
        "is no t",
        "so many",
        "is told",
    ]
