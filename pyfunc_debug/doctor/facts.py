"""What the rules ask of a recording, read once for all of them. Computed answers come from `analysis`."""

from __future__ import annotations

import ast
import json
import os
import shlex
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyfunc_debug.analysis.contention import Contention, Waits, make_contention, waits_by_node
from pyfunc_debug.analysis.groups import same_line
from pyfunc_debug.analysis.stages import StageAnswer, make_stages
from pyfunc_debug.analysis.tallies import Tally, tallies
from pyfunc_debug.doctor.bodies.decorated import decorator
from pyfunc_debug.doctor.code import all_nodes
from pyfunc_debug.doctor.failures.reading.source import parsed
from pyfunc_debug.events import Notice
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.pfrec.stopped import HELD_SQL, QUERY, held_ns, stops_of
from pyfunc_debug.places import source_line
from pyfunc_debug.program.syntax import copied
from pyfunc_debug.records import FROM_GENERATOR, Frame, Front, Function, GraphTrace, Node


@dataclass(frozen=True)
class Calls:
    """The stored calls of a node, of one kind. `first` and `last` are numbers of calls."""

    count: int = 0
    errors: int = 0
    running: int = 0
    total_ns: int = 0
    first: int | None = None
    last: int | None = None


_NO_CALLS = Calls()
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Facts:
    """A recording for rules. Everything is read when it is first asked for, and kept.

    Args:
      reader: The recording.
      front: Where the findings are read.
    """

    def __init__(self, reader: Reader, front: Front = "python") -> None:
        self.reader = reader
        self.front = front

    # -- tables -------------------------------------------------------------------------------------------------------

    @cached_property
    def meta(self) -> dict[str, Any]:
        """The recording's `meta` table."""
        return self.reader.meta

    @property
    def over(self) -> bool:
        """Whether the program came to its end: what did not happen in one that goes on, or was killed, still might."""
        return self.meta.get("state") not in ("recording", "interrupted")

    @property
    def has_keras_3(self) -> bool:
        """Whether the program had Keras 3; False where that is not known."""
        return str((self.meta.get("versions") or {}).get("keras", "")).startswith("3")

    @cached_property
    def wall_ns(self) -> int | None:
        """How long was recorded; None before the end."""
        clock, end = self.meta.get("clock"), self.meta.get("end_ns")
        return end - int(clock["monotonic_ns"]) if isinstance(clock, dict) and isinstance(end, int) else None

    def least_ns(self, idle_ns: float) -> float:
        """How long something has to take, which counts from `idle_ns` on where nothing else runs on the machine.

        Beside other processes everything takes longer: by as much as cores have less time for this one.
        """
        others = self.meta.get("others")
        return idle_ns / max(0.01, 1.0 - others) if isinstance(others, (int, float)) else idle_ns

    @cached_property
    def nodes(self) -> dict[int, Node]:
        """All nodes by number."""
        return {node.id: node for node in self.reader.nodes()}

    @cached_property
    def by_token(self) -> dict[str, Node]:
        """The nodes by the names of their functions in TensorFlow's registry."""
        return {node.token: node for node in self.nodes.values() if node.token}

    @cached_property
    def own_by_token(self) -> dict[str, Node]:
        """Of these, the user's own: not those of generators."""
        return {token: node for token, node in self.by_token.items() if node.origin == "user"}

    @cached_property
    def lines(self) -> list[list[Node]]:
        """The user's nodes; those that one line made in one function together: a retrace makes new ones."""
        return same_line((node for node in self.nodes.values() if node.origin == "user"), self.functions.values())

    @property
    def lines_and_generators(self) -> list[list[Node]]:
        """The same, and each node whose body is a generator's by itself."""
        return [*self.lines, *([one] for one in self.nodes.values() if self.is_generator(one))]

    @cached_property
    def functions(self) -> dict[int, Function]:
        """Traced functions by number."""
        return {function.id: function for function in self.reader.functions()}

    @cached_property
    def traces(self) -> list[GraphTrace]:
        """Graph traces, oldest first."""
        return self.reader.traces()

    @cached_property
    def contention(self) -> Contention:
        """What the GIL did to each node."""
        return make_contention(self.reader, sums=self.waits)

    @cached_property
    def waits(self) -> dict[int, Waits]:
        """How long each node waited for the GIL: known sooner than for whom."""
        return waits_by_node(self.reader, self._tallies)

    @cached_property
    def _tallies(self) -> dict[tuple[int, str], Tally]:
        return tallies(self.reader, held_ns(stops_of(self.reader.rows(f"{QUERY} ORDER BY id"))))

    @cached_property
    def stages(self) -> list[StageAnswer]:
        """Stages of tf.data that call Python."""
        return make_stages(self.reader, contention=self.contention)

    @cached_property
    def _calls(self) -> dict[tuple[int, str], Calls]:
        # Joined to all calls, the few that were held would take three times as long.
        held = {
            (node, kind): ns
            for node, kind, ns in self.reader.rows(
                f"SELECT node, kind, total(held.ns) FROM {HELD_SQL} AS held JOIN call ON call.id = held.call "
                "WHERE end_ns IS NOT NULL GROUP BY node, kind"
            )
        }
        return {
            key: Calls(one.count, one.errors, one.running, int(one.total_ns - held.get(key, 0)), one.first, one.last)
            for key, one in self._tallies.items()
        }

    def calls(self, node: int, kind: str = "forward") -> Calls:
        """The stored calls of a node; counts are 0 where it has none."""
        return self._calls.get((node, kind), _NO_CALLS)

    def calls_of(self, nodes: Iterable[Node], kind: str = "forward") -> Calls:
        """The stored calls of several nodes together."""
        parts = [self.calls(node.id, kind) for node in nodes]
        ends = [number for one in parts for number in (one.first, one.last) if number is not None]
        return Calls(
            sum(one.count for one in parts), sum(one.errors for one in parts), sum(one.running for one in parts),
            sum(one.total_ns for one in parts), min(ends, default=None), max(ends, default=None),
        )  # fmt: skip

    def counted_only(self, nodes: Iterable[int]) -> int:
        """How many calls of these nodes were counted but not stored."""
        return sum(self._counted_only.get(node, 0) for node in nodes)

    @cached_property
    def _counted_only(self) -> dict[int, int]:
        return (
            dict(self.reader.rows("SELECT node, sum(calls) FROM dropped GROUP BY node")) if self.has("dropped") else {}
        )

    @cached_property
    def notices(self) -> dict[str, list[tuple[int | None, int | None, dict[str, Any]]]]:
        """What was noticed while recording: node, call and facts, by the notice's rule, in order."""
        found: dict[str, list[tuple[int | None, int | None, dict[str, Any]]]] = defaultdict(list)
        for rule, node, call, text in self.reader.rows(
            "SELECT rule, node, call, facts FROM notice WHERE rule != 'logged' ORDER BY id"
        ):
            found[Notice.read(rule)].append((node, call, json.loads(text)))
        return found

    def has(self, table: str) -> bool:
        """Whether the recording has a table: older ones lack the newest."""
        return bool(self.reader.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)))

    # -- the user's program -------------------------------------------------------------------------------------------

    @cached_property
    def generators(self) -> dict[int, tuple[Node, Node]]:
        """The user's generators in datasets: the node of its elements, and that which begins a pass with `args`."""
        begin = {node.stack[-1:]: node for node in self.nodes.values() if node.body.endswith("get_next_id")}
        return {
            node.id: (node, begin[node.stack[-1:]]) for node in self.nodes.values()
            if node.file in self.files and node.stack[-1:] in begin and node.origin != "user"
        }  # fmt: skip

    def site(self, node: int | None) -> Frame | None:
        """The user's innermost line that made a node; None if it is not known."""
        known = self.nodes.get(node) if node is not None else None
        return known.stack[-1] if known is not None and known.stack else None

    @cached_property
    def files(self) -> list[str]:
        """The user's files whose text is in the recording; without those that were only imported."""
        return self._texts[0]

    @cached_property
    def imported(self) -> list[str]:
        """Files of the user's modules of which no line was seen: their texts are in the recording, too."""
        return self._texts[1]

    @cached_property
    def _texts(self) -> tuple[list[str], list[str]]:
        """The files with text by kind: those that were only imported come, and are named, as the recording ends."""
        files = [str(file) for (file,) in self.reader.rows("SELECT file FROM source")]
        said = self.reader.rows("SELECT value FROM meta WHERE key = 'imported'")  # read after the files
        imported = list(json.loads(said[0][0])) if said else []
        return [one for one in files if one not in set(imported)], imported

    def source(self, file: str | None) -> list[str]:
        """Lines of a file of the user's as they were when recorded; empty if they are not in the recording."""
        if file is None:
            return []
        if file not in self._sources:
            rows = self.reader.rows("SELECT text FROM source WHERE file = ?", (file,))
            self._sources[file] = rows[0][0].splitlines() if rows else []
        return self._sources[file]

    @cached_property
    def _sources(self) -> dict[str, list[str]]:
        return {}

    def code(self, file: str | None) -> list[str]:
        """Lines of a file, without comments and docstrings: for who looks for words."""
        return parsed("\n".join(self.source(file))).code

    def is_generator(self, node: Node) -> bool:
        """Whether a node's body is what the user gave to `from_generator`."""
        function = self.functions.get(node.function or 0)
        return function is not None and function.name == FROM_GENERATOR

    @staticmethod
    def source_line(file: str | None, line: int | None) -> str:
        """`train.py:12`."""
        return source_line(file, line)

    @staticmethod
    def name(node: Node) -> str:
        """What the user calls a body: `augment`, or `the lambda at train.py:12`."""
        last = node.body.rpartition(".")[2]
        return f"the lambda at {source_line(node.file, node.line)}" if last == "<lambda>" else last

    def line(self, file: str | None, line: int | None) -> str:
        """A line of a file of the user's, stripped; empty if it is not known."""
        lines = self.source(file)
        return lines[line - 1].strip() if line is not None and 0 < line <= len(lines) else ""

    def body(self, node: Node) -> list[tuple[int, str]]:
        """Line numbers and code of a body, without comments; empty if its source is not in the recording."""
        found = self.function(node)
        if found is None:
            return []
        lines = self.code(node.file)
        last = getattr(found, "end_lineno", None) or found.lineno
        return [(number, lines[number - 1]) for number in range(found.lineno, min(last, len(lines)) + 1)]

    def definition(self, file: str | None, line: int | None) -> Definition | None:
        """The syntax tree of a traced function that begins on a line, at its first decorator or at its `def`.

        None for a decorated body, which `map` traces a node for: its lines run in Python.
        """
        found = self._begins(file, line)
        return None if found is not None and decorator(found) is not None else found

    def _begins(self, file: str | None, line: int | None) -> Definition | None:
        if file is None or line is None:
            return None
        tree = self.tree(file)
        for one in all_nodes(tree) if tree is not None else ():
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                first = min([one.lineno, *(decorator.lineno for decorator in getattr(one, "decorator_list", ()))])
                if line in (first, one.lineno):
                    return one
        return None

    def function(self, node: Node) -> Definition | None:
        """The syntax tree of a body. Of several lambdas on its line, the one that a call of py_function is given."""
        if not node.body.endswith("<lambda>"):
            return self._begins(node.file, node.line)
        tree = self.tree(node.file)
        every = all_nodes(tree) if tree is not None else []
        found = [one for one in every if isinstance(one, ast.Lambda) and one.lineno == node.line]
        if len(found) > 1:
            calls = [one for one in every if isinstance(one, ast.Call) and makes_node(one)]
            given = {id(part) for one in calls for part in one.args[:1]}
            found = [one for one in found if id(one) in given]
        return found[0] if len(found) == 1 else None

    def tree(self, file: str | None) -> ast.Module | None:
        """The syntax tree of a file of the user's; None where it is not in the recording, or is not Python."""
        found = parsed("\n".join(self.source(file))).tree
        return found if found.body else None

    def statements(self, node: Node) -> list[tuple[int, ast.stmt]]:
        """Simple statements of a body with their lines, in order; what a lambda returns as one. Copies, to change."""
        found = self.function(node)
        if found is None:
            return []
        if isinstance(found, ast.Lambda):
            return [(found.body.lineno, ast.Expr(copied(found.body)))]
        simple = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)
        inside = [one for one in ast.walk(found) if isinstance(one, simple)]
        return [(one.lineno, copied(one)) for one in sorted(inside, key=lambda one: one.lineno)]

    def inputs(self, call: int) -> str:
        """`x float32[3] x∈[0, 1], ...`: the inputs of a call; empty if they were not kept."""
        return self._values(call, "input")

    def outputs(self, call: int) -> str:
        """The outputs of a call, likewise."""
        return self._values(call, "output")

    def shown(self, call: int) -> str:
        """`call #3: x float32[3] ... -> out ...`: a call as evidence."""
        return f"call #{call}: {self.inputs(call)} -> {self.outputs(call)}"

    def _values(self, call: int, role: str) -> str:
        rows = self.reader.rows(
            "SELECT path, text FROM value WHERE call = ? AND role = ? ORDER BY position LIMIT 4", (call, role)
        )
        return ", ".join(f"{path} {text}" for path, text in rows)

    # -- words --------------------------------------------------------------------------------------------------------

    def say(self, shell: str, notebook: str, python: str) -> str:
        """Of three forms of a fix, that of the front end in use."""
        return {"shell": shell, "notebook": notebook, "python": python}[self.front]

    @property
    def file(self) -> str:
        """The recording's file as one would type it here."""
        try:
            near = os.path.relpath(self.reader.path)
        except ValueError:  # another drive
            return self.reader.path
        return self.reader.path if near.startswith("..") else near

    def stop_at(self, body: str, when: str, condition: str = "") -> str:
        """How to stop there with a debugger."""
        name = body.rpartition(".")[2]
        glob = f"*{body.split('.')[-3]}*" if name == "<lambda>" and body.count(".") >= 2 else name
        glob = "*" if name == "<lambda>" and body.count(".") < 2 else glob
        option = f" --if {shlex.quote(condition)}" if condition else ""
        keyword = f", condition={condition!r}" if condition else ""
        python = f"pyfunc_debug.break_on({glob!r}, when={when!r}{keyword})  # before it runs: stops there"
        command = self.again(f"--break {shlex.quote(glob)} --when {when}{option}")
        return self.say(command or python, f"%pyfunc_break {glob} --when {when}{option}", python)

    def exact(self, order: int = 1) -> str:
        """How to get each call its own gradient."""
        argument = "" if order == 1 else f"order={order}"
        python = f"pyfunc_debug.exact_gradients({argument})  # at the top, before the functions are traced"
        option = "--gradients exact" if order == 1 else f"--gradients exact --order {order}"
        command = self.again(option)
        if order > 1:
            return self.say(f"{command}\n{python}" if command else python, python, python)
        shell = f"{command}\n{python}" if command else python
        return self.say(shell, f"%%pyfunc_trace --gradients exact\n{python}", python)

    def again(self, options: str) -> str | None:
        """The command that records the program again with more options; None if no such command made the recording."""
        argv = [str(one) for one in self.meta.get("argv") or ()]
        if len(argv) < 3 or os.path.basename(argv[0]) not in ("pyfunc-debug", "__main__.py") or argv[1] != "record":
            return None
        rest = argv[2:]
        replaced = ("--break", "--when", "--if") if "--break" in options else ()
        for option in ("-o", "--output", *replaced):
            own = next((place for place, one in enumerate(rest) if one == "-m" or one.endswith(".py")), len(rest))
            while option in rest[: own - 1]:
                place = rest.index(option)
                del rest[place : place + 2]
                own -= 2
        return f"pyfunc-debug record {options} {shlex.join(rest)}"

    def show_call(self, call: int) -> str:
        """How to see a call."""
        return self.say(
            f"pyfunc-debug show {self.file} --call {call}", f"%pyfunc_show {call}", f"recording.call({call})"
        )


def makes_node(call: ast.Call) -> bool:
    """Whether a call reads as one of py_function, numpy_function or py_func."""
    called = call.func  # without its text: each call of a file is asked for
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    return name in ("py_function", "numpy_function", "py_func", "eager_py_func")
