"""The files of a program, or the cells of a notebook, as one: rules look for what a line needs in one file.

The layer in layers.py, the model in a cell above, the loop in a method of a class that keeps both: the text in which
rules read all of it is one file of a name that only we know, and the recording is read with its lines. What is found
there is said and pasted in the user's own files and lines. `self.model` of a class that keeps its parts so is one name
in that text, as a variable's is.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.added_imports import MODULES
from pyfunc_debug.doctor.failures.pastes.explanation import is_instruction
from pyfunc_debug.doctor.failures.reading.source import parsed, put
from pyfunc_debug.doctor.failures.reading.text_parts import MOST_LINES, NAME, Part, Parts, all_names, used
from pyfunc_debug.doctor.imports import with_imports
from pyfunc_debug.pfrec.overlaid import Overlaid
from pyfunc_debug.places import cell_number, source_line
from pyfunc_debug.program.frames import is_installed
from pyfunc_debug.records import Finding

_DOT = "\ua4f8"
"""A letter that looks like a dot, and that nobody uses: `self.model` is as long with it, and a name."""
_OF_BODIES = frozenset(
    ("body-raised", "changed-by-hand", "constant-output", "devices", "died", "empty-recording",
     "forked-process", "gil-wait", "gradient-check", "graduate", "hang", "inf-born", "inside-waits", "memory",
     "missing-tape", "nan-born", "no-copy", "nondeterministic", "one-lock", "parallel-calls", "parallel-random",
     "range-jump", "recomputed", "retrace", "reused-memory", "saturated", "second-order", "shared-state",
     "slow-conversion", "stop-iteration", "tiny-calls", "trace-failed", "unused-input", "wrong-tape", "writes-input",
     "xla")
)  # fmt: skip
"""Rules of what was measured of one body or function: its own file says all, and `self.count` has to stay a state."""
_OF_STATES = frozenset(("epoch-end", "function-in-loop", "ran-out", "trace-only"))
"""Rules of what an object keeps and changes: for them `self.count` is an attribute, in several files too."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_INSTRUCTION = re.compile(
    rf"(?P<verb>Put above|Replace(?: lines)?) {re.escape(NAME)}:(?P<first>\d+)(?: to (?P<last>\d+))?(?P<end>(?: by)?:)"
)
_NAMED = re.compile(rf"{re.escape(NAME)}:\d+")


def added(
    facts: Facts, found: Sequence[Finding], check: Callable[[Facts, Callable[[str], bool]], Iterable[Finding]]
) -> list[Finding]:
    """What is found, and what the rules find in the files as one: of rules that found nothing, or had no paste.

    Args:
      facts: The recording.
      found: What they found in it as it is.
      check: Asks the rules whose names it is to ask.
    """
    whole = JoinedFiles(facts)
    several = len(whole.parts.files) > 1
    if whole.has_names:
        more = _found(whole, lambda whole: check(whole, lambda rule: rule not in _OF_BODIES | _OF_STATES))
        if several:
            plain = JoinedFiles(facts, names=False)
            more += _found(plain, lambda whole: check(whole, lambda rule: rule in _OF_STATES))
    elif several:
        more = _found(whole, lambda whole: check(whole, lambda rule: rule not in _OF_BODIES))
    else:
        return list(found)
    known = {one.rule for one in found}
    with_paste: dict[tuple[str, str | None, int | None], Finding] = {}
    for one in more:
        if one.rule in known and _pastes(one):
            with_paste.setdefault((one.rule, one.file, one.line), one)
    kept = [one if _pastes(one) else with_paste.get((one.rule, one.file, one.line), one) for one in found]
    return [*kept, *(one for one in more if one.rule not in known)]


def _found(whole: JoinedFiles, check: Callable[[Facts], Iterable[Finding]]) -> list[Finding]:
    with put(NAME, parsed("\n".join(whole.parts.lines))):
        return [one for one in map(whole.apart, check(whole.facts)) if one is not None]


def _pastes(finding: Finding) -> bool:
    return any(map(is_instruction, finding.fix.split("\n")))


class JoinedFiles:
    """A recording whose program is one file.

    Args:
      facts: The recording.
      names: Whether `self.model` of a class that keeps its parts is one name.
    """

    def __init__(self, facts: Facts, names: bool = True) -> None:
        self._facts = facts
        self.parts = Parts()
        self.has_names = False
        texts = dict(_texts(facts))
        for file in _ordered(texts):
            self.parts.add(file, texts[file])
        if names:
            self._use_names()

    @property
    def facts(self) -> Facts:
        """The recording with the lines of the joined text."""
        rows = self._facts.reader.rows
        above = self.parts.above
        apart = {*self._facts.files, *self._facts.imported} - set(above)  # a recording that ends gets more
        tables: dict[str, list[tuple[Any, ...]]] = {
            "source": [row for row in rows("SELECT * FROM source") if row[0] in apart],
            "meta": [
                (key, self._moved_text(text)) for key, text in rows("SELECT key, value FROM meta") if key != "imported"
            ],
        }
        tables["meta"].append(("imported", json.dumps([one for one in self._facts.imported if one not in above])))
        tables["source"].append((NAME, "\n".join(self.parts.lines)))
        for table in ("node", "function"):
            names = [name for _, name, *_ in rows(f"SELECT * FROM pragma_table_info('{table}')")]
            file, line = names.index("file"), names.index("line")
            tables[table] = [self._moved_row(row, file, line) for row in rows(f"SELECT * FROM {table}")]
        for table, column in (("stack", 1), ("notice", 4)):
            tables[table] = [
                (*row[:column], self._moved_text(row[column]), *row[column + 1 :])
                for row in rows(f"SELECT * FROM {table}")
            ]
        return Facts(Overlaid(self._facts.reader, tables), self._facts.front)

    def apart(self, found: Finding) -> Finding | None:
        """A finding in the user's files and lines; None where its paste would go into two files at once."""
        part = self.parts.at(found.line) if found.file == NAME else None
        fix = self._fix(found.fix)
        if fix is None or (found.file == NAME and part is None):
            return None
        about = part or Part("", 0, 0)
        found = replace(
            found, file=part.file if part else found.file, fix=fix,
            line=found.line - part.above if part and found.line is not None else found.line,
            message=self._words(found.message, about),
            evidence=tuple(self._words(one, about) for one in found.evidence),
        )  # fmt: skip
        for one in self.parts.files:  # a file may lack what another imports
            if f"{source_line(one.file, None)}:" in found.fix:
                found = replace(with_imports(self._facts, replace(found, file=one.file)), file=found.file)
        return found

    def _words(self, text: str, about: Part) -> str:
        return self.parts.in_files(text, about).replace(_DOT, ".")

    def _fix(self, fix: str) -> str | None:
        """A fix with the user's files and lines; None where one of its pastes is for no file alone."""
        lines: list[str] = []
        at: Part | None = None
        pasted: dict[str, list[str]] = {}
        for line in fix.replace(_DOT, ".").split("\n"):
            match = _INSTRUCTION.fullmatch(line.strip())
            if match is None:
                if at is not None:
                    pasted[at.file].append(line)
                lines.append(_NAMED.sub(lambda one: self.parts.in_files(one[0], self.parts.files[0]), line))
                continue
            first = int(match["first"])
            last = int(match["last"] or first)
            at = self.parts.at(first)
            if at is None or self.parts.at(last) is not at:
                return None
            pasted.setdefault(at.file, [])
            to = f" to {last - at.above}" if match["last"] else ""
            lines.append(f"{match['verb']} {source_line(at.file, first - at.above)}{to}{match['end']}")
        return None if any(self._is_foreign(file, text) for file, text in pasted.items()) else "\n".join(lines)

    def _is_foreign(self, file: str, pasted: list[str]) -> bool:
        """Whether pasted lines have names that only another file has."""
        own = _words_of(self._facts.source(file))
        others = {
            name for one in self.parts.files if one.file != file and cell_number(one.file) is None
            for statement in pastes.source(self._facts, one.file).tree.body for name in _bound(statement)
        }  # fmt: skip
        return bool((_words_of(pasted) - own - MODULES.keys() - vars(builtins).keys()) & others)

    # -- the recording's lines ----------------------------------------------------------------------------------------

    def _moved_row(self, row: tuple[Any, ...], file: int, line: int) -> tuple[Any, ...]:
        above = self.parts.above.get(row[file])
        if above is None:
            return row
        cells = list(row)
        cells[file], cells[line] = NAME, None if row[line] is None else row[line] + above
        return tuple(cells)

    def _moved_text(self, text: str) -> str:
        if not any(json.dumps(file)[1:-1] in text or file in text for file in self.parts.above):
            return text
        return json.dumps(_moved(json.loads(text), self.parts.above))

    # -- names for what a class keeps ---------------------------------------------------------------------------------

    def _use_names(self) -> None:
        """Writes `self.model` as one name in classes that have no base and assign it once: nobody else assigns it."""
        tree = parsed("\n".join(self.parts.lines)).tree
        holders = [one for one in ast.walk(tree) if isinstance(one, ast.ClassDef)]
        plain = [one for one in holders if all(ast.unparse(base) == "object" for base in one.bases)]
        plain = [one for one in plain if not one.keywords and not one.decorator_list]
        kept = Counter(name for one in plain for name in set(_kept(one)))
        lines = [line.encode() for line in self.parts.lines]
        spots = []
        for one in plain:
            own = Counter(_kept(one))
            names = {name for name in own if kept[name] == 1}
            for node in ast.walk(one):
                if _is_own(node) and node.attr in names:  # type: ignore[attr-defined]
                    spots.append((node.lineno, node.value.end_col_offset))  # type: ignore[attr-defined]
                    self.has_names = True
        for line, column in sorted(spots, reverse=True):
            text = lines[line - 1]
            if text[column : column + 1] == b".":
                lines[line - 1] = text[:column] + _DOT.encode() + text[column + 1 :]
        self.parts.lines = [line.decode() for line in lines]


def _kept(holder: ast.ClassDef) -> Iterator[str]:
    """What the methods of a class assign to `self`."""
    methods = {one.name for one in holder.body if isinstance(one, _DEFINITIONS)}
    for one in ast.walk(holder):
        if _is_own(one) and isinstance(one.ctx, ast.Store) and one.attr not in methods:  # type: ignore[attr-defined]
            yield one.attr  # type: ignore[attr-defined]


def _is_own(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _moved(value: Any, above: Mapping[str, int]) -> Any:
    """JSON with the places of the joined text: a file with its line beside it, in a list or by name."""
    if isinstance(value, list):
        found = [_moved(one, above) for one in value]
        for place, one in enumerate(value[:-1]):
            if isinstance(one, str) and one in above and type(value[place + 1]) is int:
                found[place + 1] = value[place + 1] + above[one]
        return found
    if isinstance(value, dict):
        moved = {key: _moved(one, above) for key, one in value.items()}
        for key, one in value.items():
            if isinstance(one, str) and one in above:
                lines = [key.replace("file", "line"), *(("first", "last") if "lines" in value else ())]
                for line in lines:
                    if type(value.get(line)) is int:
                        moved[line] = value[line] + above[one]
        return moved
    return NAME if isinstance(value, str) and value in above else value


# -- which files, and what of them ------------------------------------------------------------------------------------


def _texts(facts: Facts) -> Iterator[tuple[str, list[str]]]:
    """The files of which lines were seen, and what these use of those that they import.

    A name that two files give two meanings would be read as one: the second one is left out.
    """
    bound: dict[str, ast.stmt] = {}
    wanted: set[str] = set()
    count = 0
    imported = set(facts.imported) - {facts.meta.get("program")}
    for file in (*facts.files, *facts.imported):
        tree, lines = facts.tree(file), list(facts.source(file))
        if tree is None or is_installed(file) or count + len(lines) > MOST_LINES:
            continue
        body = tree.body
        if file in imported:
            body = list(used(tree, wanted))
            for one in tree.body:
                if one not in body:
                    first = min([one.lineno, *(each.lineno for each in getattr(one, "decorator_list", ()))])
                    lines[first - 1 : one.end_lineno] = [""] * ((one.end_lineno or one.lineno) - first + 1)
        own = {name: one for one in body for name in _bound(one)}
        twice = [(one, bound[name]) for name, one in own.items() if name in bound]
        if cell_number(file) is None and any(ast.unparse(one) != ast.unparse(other) for one, other in twice):
            continue
        bound |= own
        count += len(lines)
        wanted |= {name for one in body for name in all_names(one)}
        yield file, lines


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a file defines, but those of imports."""
    if isinstance(statement, _DEFINITIONS):
        yield statement.name
    elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
            for one in ast.walk(target):
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                    yield one.id


def _words_of(lines: Iterable[str]) -> set[str]:
    return {word for line in lines for word in re.findall(r"(?<![\w.])[^\W\d]\w*", line.partition("#")[0])}


def _ordered(texts: Mapping[str, Sequence[str]]) -> list[str]:
    """Imported files above those that import them, and cells in their order."""
    cells = sorted((one for one in texts if cell_number(one) is not None), key=lambda one: cell_number(one) or 0)
    files = [one for one in texts if cell_number(one) is None]
    modules = {file.replace("\\", "/").rpartition("/")[2].removesuffix(".py"): file for file in files}
    found: list[str] = []

    def place(file: str, under: tuple[str, ...]) -> None:
        for line in texts[file]:
            if line.lstrip().startswith(("import ", "from ")):
                for word in re.findall(r"\w+", line):
                    other = modules.get(word)
                    if other is not None and other not in (*found, *under, file):
                        place(other, (*under, file))
        if file not in found:
            found.append(file)

    for file in files:
        place(file, ())
    return [*found, *cells]
