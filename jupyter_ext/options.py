"""Options of the magics: the same words as `pyfunc_debug.record`, and errors that IPython shows without a traceback."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from IPython.core.error import UsageError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}. `{self.prog}?` shows the options")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="%pyfunc_trace", add_help=False, allow_abbrev=False)
    parser.add_argument("-o", "--output", metavar="FILE")
    parser.add_argument("--values", action="append", default=[], metavar="POLICY")
    parser.add_argument("--nodes", default="*", metavar="GLOB")
    parser.add_argument("--gradients", default="stock", metavar="MODE")
    parser.add_argument("--lines", action="store_true")
    parser.add_argument("--graph-lines", action="store_true")
    parser.add_argument("--random-state", action="store_true")
    parser.add_argument("--no-gil", action="store_true")
    parser.add_argument("--budget", default="256MB", metavar="BYTES")
    parser.add_argument("--hang-after", type=float, default=30.0, metavar="S")
    parser.add_argument("--no-panel", action="store_true")
    return parser


_WITH_VALUE = ("-o", "--output", "--values", "--nodes", "--gradients", "--budget", "--hang-after")
OPTIONS = (*_WITH_VALUE, "--lines", "--graph-lines", "--random-state", "--no-gil", "--no-panel")


def split(line: str) -> tuple[list[str], str]:
    """Options at the beginning of a line, and the rest, which may be a statement and is not touched.

    Raises:
      UsageError: a quote is not closed.
    """
    words = []
    rest = line.strip()
    while rest.startswith("-"):
        word, _, after = rest.partition(" ")
        name, equals, _ = word.partition("=")
        if name not in OPTIONS:
            if not name.lstrip("-").isidentifier() and name.lstrip("-"):
                break  # `-x + 1`, `-3`: a statement
            if not name.startswith("--"):
                break
        words.append(word)
        rest = after.lstrip()
        if name in _WITH_VALUE and not equals and rest:
            value, rest = _first_word(rest)
            words.append(value)
    return words, rest


def _first_word(text: str) -> tuple[str, str]:
    """The first word, without its quotes, and what follows it."""
    if text[0] in "'\"":
        word, quote, rest = text[1:].partition(text[0])
        if not quote:
            raise UsageError(f"cannot read {text!r}: the quote is not closed")
        return word, rest.lstrip()
    word, _, rest = text.partition(" ")
    return word, rest.lstrip()


def parse(words: list[str]) -> tuple[dict[str, Any], bool]:
    """Arguments for `pyfunc_debug.record`, and whether to show the panel.

    Raises:
      UsageError: bad options, with the name of the option.
    """
    found = _parser().parse_args(words)
    return {
        "path": found.output,
        "values": _values(found.values),
        "nodes": found.nodes,
        "gradients": found.gradients,
        "gil": not found.no_gil,
        "lines": "graph" if found.graph_lines else found.lines,
        "random_state": found.random_state,
        "budget": found.budget,
        "hang_after": found.hang_after or None,
    }, not found.no_panel


def with_wishes(values: str | dict[str, str], wishes: dict[str, str]) -> str | dict[str, str]:
    """What to keep, and what somebody asked for in a panel; what the cell itself says comes first."""
    if not wishes:
        return values
    rules = {"*": values} if isinstance(values, str) else dict(values)
    return {**rules, **{node: policy for node, policy in wishes.items() if node not in rules}}


def _values(given: list[str]) -> str | dict[str, str]:
    """`--values full`, or several: `--values augment=full --values none`."""
    rules: dict[str, str] = {}
    for text in given:
        pattern, equals, policy = text.rpartition("=")
        rules[pattern if equals else "*"] = policy
    if not rules:
        return "summary"
    return rules["*"] if list(rules) == ["*"] else rules
