"""Findings that the user has silenced with a comment on the line: `# pyfunc: ignore[nan-born]`."""

from __future__ import annotations

import ast
import re
from typing import Protocol

from pyfunc_debug.program import syntax
from pyfunc_debug.records import Finding, Frame

_COMMENT = re.compile(r"#.*?\bpyfunc:\s*ignore(?:\[([^\]]*)\])?")


class Sources(Protocol):
    """Where the user's lines are read: a recording, or the files."""

    def source(self, file: str | None) -> list[str]:
        """Lines of a file; empty if they are not known."""

    def site(self, node: int | None) -> Frame | None:
        """The user's line that made a node."""


class Silenced:
    """Whether a finding is silenced: on its own line, or on the line that calls one of its nodes.

    A line stands for the whole statement it is in; that of a function, for its decorators and its signature.
    """

    def __init__(self, facts: Sources) -> None:
        self._facts = facts
        self._rules: dict[tuple[str, int], frozenset[str] | None] = {}
        self._statements: dict[str, list[tuple[int, int]]] = {}

    def __call__(self, finding: Finding) -> bool:
        places = {(finding.file, finding.line)}
        for number in finding.nodes or (finding.node,):
            site = self._facts.site(number)
            if site is not None:
                places.add((site.file, site.line))
        return any(self._silent(file, line, finding.rule) for file, line in places if file and line)

    def _silent(self, file: str, line: int, rule: str) -> bool:
        if (file, line) not in self._rules:
            self._rules[file, line] = self._read(file, line)
        rules = self._rules[file, line]
        return rules is not None and (not rules or rule in rules)

    def _read(self, file: str, line: int) -> frozenset[str] | None:
        """Rules named on the statement; empty for all, None without a comment."""
        lines = self._facts.source(file)
        if not any("pyfunc:" in text for text in lines):
            return None
        first, last = self._statement(file, line)
        found = [_COMMENT.search(text) for text in lines[first - 1 : last]]
        named = [match[1] for match in found if match is not None]
        if not named:
            return None
        if any(names is None for names in named):
            return frozenset()
        return frozenset(name.strip() for names in named for name in names.split(","))

    def _statement(self, file: str, line: int) -> tuple[int, int]:
        if file not in self._statements:
            self._statements[file] = _statements("\n".join(self._facts.source(file)))
        around = [span for span in self._statements[file] if span[0] <= line <= span[1]]
        return min(around, key=lambda span: span[1] - span[0], default=(line, line))


def _statements(text: str) -> list[tuple[int, int]]:
    """First and last lines of statements; of those with a body, of what stands before it."""
    try:
        tree = syntax.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        first, last = node.lineno, node.end_lineno or node.lineno
        for decorator in getattr(node, "decorator_list", ()):
            first = min(first, decorator.lineno)
        body = getattr(node, "body", None)
        if isinstance(body, list) and body:
            last = max(first, body[0].lineno - 1) if body[0].lineno > node.lineno else node.lineno
        found.append((first, last))
    return found
