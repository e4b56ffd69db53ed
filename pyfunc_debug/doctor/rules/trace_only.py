"""Python that a traced function ran once, while the graph was built: state it changes, draws, seeds, the clock."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.draws.drawn_once import drawn_once, draws_of
from pyfunc_debug.doctor.draws.draws import SEEDS
from pyfunc_debug.doctor.draws.late_seeds import seeded_late
from pyfunc_debug.doctor.facts import Definition, Facts, makes_node
from pyfunc_debug.doctor.failures.graphs.state_changes import in_python
from pyfunc_debug.doctor.failures.kept import edited_lines
from pyfunc_debug.doctor.failures.pastes.each_time import each_time
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import names
from pyfunc_debug.doctor.graphs.undecorated import undecorated
from pyfunc_debug.doctor.text import listed, times
from pyfunc_debug.program import syntax
from pyfunc_debug.records import Finding, Function

NAMES = ("trace-only",)
_BY_KERAS = (".learning_rate", ".trainable")
"""Attributes of Keras' objects: what is set goes to a variable, by an op of the graph, or is Keras' own matter."""
_IN_PYTHON = "In Python that happened"
"""Of a loop, which may be one of the graph: that computes in each run, and Python sees nothing of it."""
_MOST = 4
"""Lines of draws that are shown."""
_PYTHONS = {
    "min": ("minimum", 2, ""), "max": ("maximum", 2, ""), "abs": ("abs", 1, ""), "float": ("cast", 1, "float32"),
    "int": ("cast", 1, "int32"), "round": ("round", 1, ""), "pow": ("pow", 2, ""),
}  # fmt: skip
"""Functions of Python that take no variable of a graph: the op, how many values both take, and its dtype."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a function and cause: each ran once for each graph trace, not for each run."""
    runs = Counter(
        dict(facts.reader.rows("SELECT function, count(*) FROM run WHERE kind = 'forward' GROUP BY function"))
    )
    traces = Counter(trace.function for trace in facts.traces if trace.error is None)
    for number, function in facts.functions.items():
        if function.origin != "user" or not traces[number]:
            continue
        yield from seeded_late(facts, function)
        found = facts.definition(function.file, function.line)
        draws = draws_of(found, facts.tree(function.file)) if found is not None else []
        kept = {one.line for one in code.state_writes(found) if not _assigns(one)} if found is not None else set()
        draws = [one for one in draws if one.line not in kept]  # of what only Python sees
        many = function.kind == "tf.data" or runs[number] > traces[number]
        if draws and many:
            yield drawn_once(facts, function, draws, traces[number], runs[number])
        seed = _seed(found) if found is not None and many and not draws else None
        if seed is not None and found is not None:
            yield _seeded_once(facts, function, found, seed, traces[number], runs[number])
        read = code.clock(found) if found is not None and many else None
        if read is not None and found is not None:
            line, short = facts.line(function.file, read.line), function.name.rpartition(".")[2]
            lasted = code.durations(found)
            yield Finding(
                "trace-only", "warning", None, (),
                f"line {read.line} of {function.name} reads the clock in Python. It ran {times(traces[number])}, "
                "while the graph was built: from then on it is a constant",
                f"{ast.unparse(lasted[0])} where {short} is called, with both times taken there: a graph keeps no "
                "order between a clock and the ops around it"
                if lasted else _timestamp(facts, function, read), function.file, read.line,
                evidence=(f"line {read.line}: {line}",),
            )  # fmt: skip
        data = function.kind == "tf.data"
        left = function.kind == "tf.function" and function.name.rpartition(".")[2] in _printed_later(facts)
        turns = [] if many or left or function.kind != "tf.function" or found is None else _in_graph_loops(found)
        if function.kind not in ("tf.function", "tf.data") or not (many or left or turns):
            continue
        writes = code.state_writes(found, items=left) if found is not None else []
        writes = [one for one in writes if not turns or (one.line in turns and not _assigns(one))]
        writes = [one for one in writes if not _of_tensorflow(one) and not (data and _sets(one))]
        writes = [one for one in writes if found is None or not _made_once(found, one)]
        told = edited_lines(facts)
        if found is not None and (function.file, pastes.first_line(found)) in told:
            continue  # the paste takes its tf.function away
        if found is not None and many and not data:
            yield from _in_helpers(facts, function, found, traces[number], runs[number])
        writes = sorted((one for one in writes if (function.file, one.line) not in told), key=lambda one: one.line)
        when = (
            "the dataset was built, and not for each element" if data
            else f"TensorFlow traced the function, and not in its {runs[number]:,} runs" if many
            else "TensorFlow traced the loop, and not in each of its turns" if turns
            else "TensorFlow traced the function: it left a tensor of the graph there, which has no value"
        )  # fmt: skip
        for made, paste in ((True, _variables), (False, _each_time)):
            changes = [one for one in writes if _assigns(one) == made]
            if changes:
                ran = "" if not made or _outside_loops(found, changes) else _IN_PYTHON
                yield _changed_once(function, changes, traces[number], when, paste(facts, function, changes), ran)


def _in_graph_loops(function: Definition) -> list[int]:
    """The lines of loops over `tf.range(...)`, which TensorFlow traces once for all turns."""
    return [
        line for one in code.own_nodes(function)
        if isinstance(one, ast.For) and isinstance(one.iter, ast.Call) and ast.unparse(one.iter.func) == "tf.range"
        for line in range(one.body[0].lineno, (one.end_lineno or one.lineno) + 1)
    ]  # fmt: skip


def _printed_later(facts: Facts) -> set[str]:
    """Names of functions whose graph's tensors were printed when no graph was built: Python had kept them."""
    return {str(noticed["graph"]) for _, _, noticed in facts.notices["printed-symbol"]}


def _in_helpers(facts: Facts, function: Function, found: Definition, traces: int, runs: int) -> Iterator[Finding]:
    """What the functions of the file change that a traced one calls, each time that it runs."""
    tree, told = facts.tree(function.file), edited_lines(facts)
    methods = {id(one) for holder in pastes.walk(tree, ast.ClassDef) for one in holder.body}
    called = {pastes.last_name(one.func): one for one in _each_run(found) if isinstance(one, ast.Call)}
    for helper in pastes.walk(tree, ast.FunctionDef):
        call = called.get(helper.name)
        alone = sum(one.name == helper.name for one in pastes.walk(tree, ast.FunctionDef)) == 1
        if call is None or not alone or helper.decorator_list or helper is found:
            continue
        if (id(helper) in methods) != isinstance(call.func, ast.Attribute):
            continue  # a function of that name, and a method of something else
        lines = {one.lineno for one in _each_run(helper) if isinstance(one, (ast.stmt, ast.expr))}
        writes = [
            one for one in code.state_writes(helper)
            if one.line in lines and (function.file, one.line) not in told
            and not _of_tensorflow(one) and not _sets(one)
        ]  # fmt: skip
        own = dataclasses.replace(function, name=helper.name, line=helper.lineno)
        when = f"TensorFlow traced {function.name}, which calls it, and not in its {runs:,} runs"
        for made, paste in ((True, _variables), (False, _each_time)):
            changes = [one for one in writes if _assigns(one) == made]
            if changes:
                yield _changed_once(own, changes, traces, when, paste(facts, own, changes))


def _each_run(function: Definition) -> Iterator[ast.AST]:
    """The nodes of a function's statements that no condition and no loop stands around, and that are of no body."""
    todo: list[ast.stmt] = [] if isinstance(function, ast.Lambda) else list(function.body)
    while todo:
        one = todo.pop(0)
        if isinstance(one, ast.With):
            todo[:0] = one.body
        elif isinstance(one, (ast.Expr, ast.Assign, ast.AugAssign, ast.Return)):
            yield from _in_graph(one)


def _in_graph(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement, without what it gives to a py_function: that runs each time."""
    yield node
    if not isinstance(node, ast.Call) or not makes_node(node):
        for one in ast.iter_child_nodes(node):
            yield from _in_graph(one)


def _outside_loops(function: Definition | None, writes: Sequence[code.Write]) -> bool:
    """Whether no loop stands around lines."""
    loops = [one for one in pastes.walk(function, ast.stmt) if isinstance(one, (ast.For, ast.While))]
    return not any(loop.lineno < one.line <= (loop.end_lineno or 0) for loop in loops for one in writes)


def _changed_once(
    function: Function, writes: Sequence[code.Write], traces: int, when: str, fix: str, ran: str = ""
) -> Finding:
    """Python state that a function changes while its graph is built."""
    lines = list(dict.fromkeys(one.line for one in writes))
    targets = list(dict.fromkeys(one.target or one.name for one in writes))
    several = len(lines) > 1
    what = f"Python's {listed([repr(one) for one in targets])}"
    once = f"{'They' if several else 'It'} ran {times(traces)},"
    return Finding(
        "trace-only", "warning", None, (),
        f"line{'s' * several} {listed(lines)} of {function.name} change{'s' * (not several)} {what}. "
        f"{ran or once} when {when}",
        fix, function.file, lines[0],
        evidence=tuple(f"line {one.line}: {one.text}" for one in writes[:_MOST]),
    )  # fmt: skip


def _assigns(write: code.Write) -> bool:
    return isinstance(syntax.parse(write.text).body[0], (ast.Assign, ast.AugAssign))


def _seed(function: Definition) -> ast.Expr | None:
    """The statement of a function that seeds Python's, NumPy's or TensorFlow's global random numbers."""
    statements = (one for one in code.own_nodes(function) if isinstance(one, ast.Expr))
    built = (one for one in statements if not any(isinstance(part, ast.Lambda) for part in ast.walk(one)))
    return next((one for one in built if SEEDS.search(ast.unparse(one))), None)


def _seeded_once(
    facts: Facts, function: Function, found: Definition, seed: ast.Expr, traces: int, runs: int
) -> Finding:
    """A seed that is set while the graph is built: no run sets it again."""
    text, data = ast.unparse(seed), function.kind == "tf.data"
    again = "for no element" if data else f"in none of its {runs:,} runs"
    indent, own = pastes.indent(facts, function.file, seed.lineno), set(code.local_names(found))
    fix = ""
    if indent is not None and function.file is not None and found.lineno != seed.lineno and not own & set(names(seed)):
        head = "pass  # " if len(getattr(found, "body", ())) == 1 else "# "
        instead = Edit(function.file, seed.lineno, seed.lineno, (f"{indent}{head}{text}: once, above",))
        fix = pastes.written(instead, pastes.above(facts, function.file, pastes.first_line(found), text))
    stateless = "tf.random.stateless_uniform(shape, seed=[1, 2]) and its like"
    return Finding(
        "trace-only", "warning", None, (),
        f"line {seed.lineno} of {function.name} sets a seed ({text}) in Python. It ran {times(traces)}, when "
        f"{'the dataset was built' if data else 'TensorFlow traced the function'}, and {again}. To draw "
        f"the same each time, {stateless} take their seed in the graph",
        fix or f"{text}  # once, before the function is traced", function.file, seed.lineno,
        evidence=(f"line {seed.lineno}: {facts.line(function.file, seed.lineno)}",),
    )  # fmt: skip


def _timestamp(facts: Facts, function: Function, read: code.Write) -> str:
    """The line with TensorFlow's clock, as a number of the kind that it is computed with."""
    tree = facts.tree(function.file)
    calls = [one for one in pastes.around(tree, read.line, ast.Call) if ast.unparse(one) == read.text]
    if len(calls) != 1:
        return "tf.timestamp()"
    sides = [one for one in pastes.around(tree, read.line, ast.BinOp) if calls[0] in (one.left, one.right)]
    other = (sides[0].right if sides[0].left is calls[0] else sides[0].left) if sides else None
    new = f"tf.cast(tf.timestamp(), {other.id}.dtype)" if isinstance(other, ast.Name) else "tf.timestamp()"
    return pastes.written(pastes.replaced(facts, function.file, {calls[0]: new}))


def _each_time(facts: Facts, function: Function, writes: Sequence[code.Write]) -> str:
    """The changes in py_functions, which are given the tensors that they need."""
    found = facts.definition(function.file, function.line)
    tf = pastes.module(facts, function.file, "tensorflow") or "tf"
    pieces: dict[ast.expr, str] = {}
    for write in writes:
        there = [one for one in pastes.around(facts.tree(function.file), write.line, ast.Call)
                 if ast.unparse(one) == write.text]  # fmt: skip
        there = [_with_chain(facts.tree(function.file), one) for one in there]
        new = None
        if found is not None and len(there) == 1 and not _read_elsewhere(found, write):
            new = each_time(pastes.source(facts, function.file), found, there[0], tf)
        if new is None:
            break
        pieces[there[0]] = new
    edits = pastes.all_replaced(facts, function.file, pieces) if len(pieces) == len(writes) else ""
    if edits:
        return edits
    write, name = writes[0], function.name.rpartition(".")[2]
    tree = facts.tree(function.file)
    goes_on = found is not None and _read_elsewhere(found, write)
    plain = undecorated(facts, function, found, "goes on with what Python keeps") if goes_on else ""
    if plain:
        return plain
    takes = write.text.partition("(")[0].endswith((".pop", ".popleft"))
    if takes and not any(ast.unparse(one.value) == write.text for one in pastes.walk(tree, ast.Expr)):
        return f"call {write.text} where {name} is called, and give {name} what that returns"
    return (
        f"return from {name} what line {write.line} keeps, and call {write.target or write.name}."
        f"{write.text[len(write.target) + 1 :].partition('(')[0]}(...) with it where {name} is called"
    )


def _with_chain(tree: ast.AST | None, call: ast.Call) -> ast.Call:
    """The call with those that are asked of its result: `self.losses.setdefault(name, []).append(loss)`."""
    around = {id(one.func.value): one for one in pastes.walk(tree, ast.Call) if isinstance(one.func, ast.Attribute)}
    while id(call) in around:
        call = around[id(call)]
    return call


def _read_elsewhere(function: Definition, write: code.Write) -> bool:
    """Whether the function goes on with what it adds to: at trace, when a py_function has added nothing yet."""
    text = write.target or write.name
    return any(
        isinstance(one, (ast.Name, ast.Attribute)) and ast.unparse(one) == text and one.lineno != write.line
        for one in code.own_nodes(function)
    )


def _variables(facts: Facts, function: Function, writes: Sequence[code.Write]) -> str:
    """The lines with variables of TensorFlow's, which a graph can change, and where they are made."""
    edits: list[Edit | None] = []
    if arrays := _written_arrays(writes):
        return arrays
    for write in writes:
        found = _variable(facts, function, write)
        if isinstance(found, str):
            return found
        edits += [one for one in found if one not in edits]
    edits += _printed(facts, function, writes)
    taken = Counter(line for one in edits if one is not None for line in range(one.first, one.last + 1))
    if max(taken.values(), default=0) > 1 and len(writes) > 1:  # one line computes with several of them
        return _variables(facts, function, writes[:1])
    return pastes.written(*edits)


def _written_arrays(writes: Sequence[code.Write]) -> str:
    """Words for `self.buffer = self.buffer.write(at, x)`, of a TensorArray: "" where no line does that."""
    lines, others = [], []
    for write in writes:
        name = write.target or write.name
        body = syntax.parse(write.text).body
        value = body[0].value if body and isinstance(body[0], ast.Assign) else None
        writes_part = (
            isinstance(value, ast.Call) and ast.unparse(value.func) == f"{name}.write" and len(value.args) == 2
        )
        if isinstance(value, ast.Call) and writes_part:
            at, part = map(ast.unparse, value.args)
            lines.append(f"{name}[{at}].assign({part})")
        else:
            others.append(name)
    if not lines:
        return ""
    made = "# once, before the function is traced: tf.Variable(tf.zeros((size, ...))) in the place of each TensorArray"
    also = f",\n# and of {listed(others)} tf.Variable(0), changed by .assign(...)" if others else ""
    return "\n".join([*lines, f"{made}, which lasts for one run{also}"])


def _printed(facts: Facts, function: Function, writes: Sequence[code.Write]) -> list[Edit | None]:
    """Where the program prints what is a variable then: its number."""
    every = (*facts.functions.values(), function)
    known = (facts.definition(one.file, one.line) for one in every if one.file == function.file)
    traced = [range(pastes.first_line(one), (one.end_lineno or 0) + 1) for one in known if one is not None]
    changed = {one.target or one.name for one in writes}
    of_self = {name.removeprefix("self.") for name in changed if name.startswith("self.")}
    pieces: dict[ast.expr, str] = {}
    for call in pastes.walk(facts.tree(function.file), ast.Call):
        if ast.unparse(call.func) != "print" or any(call.lineno in lines for lines in traced):
            continue
        for part in (one for given in call.args for one in ast.walk(given)):
            if not isinstance(part, (ast.Name, ast.Attribute)):
                continue
            text = ast.unparse(part)
            held = isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.attr in of_self
            if (text in changed or held) and pastes.text_of(facts, function.file, part) == text:
                pieces[part] = f"{text}.numpy()"
    return pastes.each_replaced(facts, function.file, pieces) if 0 < len(pieces) <= pastes.MOST else []


def _is_variable(facts: Facts, function: Function, write: code.Write, name: str) -> bool:
    """Whether a name begins as a tf.Variable, which this line replaces by a tensor."""
    tf = pastes.module(facts, function.file, "tensorflow")
    made = [
        one.value for one in pastes.walk(facts.tree(function.file), ast.Assign)
        if one.lineno != write.line and name in map(ast.unparse, one.targets)
    ]  # fmt: skip
    return tf is not None and bool(made) and all(
        isinstance(one, ast.Call) and ast.unparse(one.func) == f"{tf}.Variable" for one in made
    )  # fmt: skip


def _variable(facts: Facts, function: Function, write: code.Write) -> list[Edit | None] | str:
    """What one of the lines needs; words where it cannot be pasted."""
    name = write.target or write.name
    left, _, right = write.text.partition("=")
    added = {"+": "assign_add", "-": "assign_sub"}.get(left.rstrip()[-1:])
    inside = f"{name}.{added or 'assign'}({right.strip()})"
    change = pastes.lines_of(facts, function.file, write.line)
    found = facts.definition(function.file, function.line)
    empty = any(
        ast.unparse(target) == name and isinstance(one.value, ast.Constant) and one.value.value is None
        for one in pastes.walk(facts.tree(function.file), ast.Assign) for target in one.targets
    )  # fmt: skip
    if empty:
        return f"{inside}  # once, before the function is traced: {name} = tf.Variable(...), of this dtype and shape"
    if found is not None and _as_key(found, name):
        caller = f"where {function.name.rpartition('.')[2]} is called"
        return f"change {name} {caller}, which is Python: a tensor cannot be a key"
    if "[" in name and found is not None and not _begins(facts.tree(function.file), name):
        return _kept(facts, function, found, write)
    if change is not None and len(change[1]) == 1 and _is_variable(facts, function, write, name):
        return [Edit(str(function.file), write.line, write.line, (f"{change[0]}{inside}",))]
    of_object = _attribute(facts, function, write, inside) if "." in name else []
    if of_object and None not in of_object:
        return of_object
    if change is None or len(change[1]) != 1 or found is None or name.partition(".")[0] in code.parameters(found):
        return f"{inside}  # once, before the function is traced: {name} = tf.Variable({name})"
    holders = pastes.around(facts.tree(function.file), found.lineno, ast.ClassDef)[
        :1
    ]  # a method does not see its names
    first = pastes.first_line(holders[0] if holders else found)
    kind = ", dtype=tf.float32" if _beside_floats(facts, function, name) and _whole(facts, function, name) else ""
    made = pastes.above(facts, function.file, first, f"{name} = tf.Variable({name}{kind})")
    read = _read_in_ops(facts, function, name, write.line)
    return [made, *read, Edit(str(function.file), write.line, write.line, (f"{change[0]}{inside}",))]


def _as_key(function: Definition, name: str) -> bool:
    """Whether a function looks something up by a number (`self.history[self.count]`), or puts it into a text."""
    parts = [one.slice for one in code.own_nodes(function) if isinstance(one, ast.Subscript)]
    parts += [one.value for one in code.own_nodes(function) if isinstance(one, ast.FormattedValue)]
    return any(ast.unparse(part) == name for part in parts)


def _begins(tree: ast.AST | None, target: str) -> bool:
    """Whether the file gives `state["n"]` a number to begin with, as a variable needs one."""
    asked = syntax.expression(target)
    for one in pastes.walk(tree, ast.Assign):
        texts = [ast.unparse(part) for part in one.targets]
        if target in texts and code.is_number(one.value):
            return True
        if isinstance(asked, ast.Subscript) and ast.unparse(asked.value) in texts and isinstance(one.value, ast.Dict):
            key = ast.unparse(asked.slice)
            pairs = zip(one.value.keys, one.value.values)
            if any(name is not None and ast.unparse(name) == key and code.is_number(value) for name, value in pairs):
                return True
    return False


def _kept(facts: Facts, function: Function, found: Definition, write: code.Write) -> list[Edit | None] | str:
    """The line as a py_function's body, where it is a change of a dict's or a list's that no variable can be."""
    statement = next((one for one in pastes.walk(found, ast.stmt) if ast.unparse(one) == write.text), None)
    tf, local = pastes.module(facts, function.file, "tensorflow") or "tf", code.local_names(found)
    inputs = [one for one in names(statement) if one in local and one != write.name] if statement is not None else []
    edit = None
    if statement is not None:
        keys = [one for one in inputs if one in _keys_of(statement)]  # no tensor is one: it is not hashable
        given = [one for one in inputs if one not in keys]
        edit = in_python(pastes.source(facts, function.file), found, statement, given, tf, keys=keys)
    if edit is None or function.file is None:
        name = function.name.rpartition(".")[2]
        return f"return from {name} what line {write.line} keeps, and keep it where {name} is called"
    return [dataclasses.replace(edit, file=function.file)]


def _keys_of(statement: ast.stmt) -> set[str]:
    """The names by which a statement asks a container for its place: `kept[name, i] = x`."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    return {
        name for one in ast.walk(target or statement) if isinstance(one, ast.Subscript) for name in names(one.slice)
    }


def _read_in_ops(facts: Facts, function: Function, name: str, but: int) -> list[Edit | None]:
    """The function's lines in which Python computes with what is a variable then, in TensorFlow's ops."""
    tf = pastes.module(facts, function.file, "tensorflow") or "tf"
    pieces: dict[ast.expr, str] = {}
    for one in pastes.walk(facts.definition(function.file, function.line), ast.Call):
        read = {ast.unparse(part) for given in one.args for part in ast.walk(given)}
        op = _PYTHONS.get(ast.unparse(one.func))
        if op is None or name not in read or one.keywords or one.lineno == but or len(one.args) != op[1]:
            continue
        given = ", ".join(pastes.text_of(facts, function.file, part) for part in one.args)
        pieces[one] = f"{tf}.{op[0]}({given}{f', {tf}.{op[2]}' if op[2] else ''})"
    inner = {id(part) for one in pieces for part in ast.walk(one) if part is not one}
    return pastes.each_replaced(
        facts, function.file, {one: text for one, text in pieces.items() if id(one) not in inner}
    )


def _attribute(facts: Facts, function: Function, write: code.Write, inside: str) -> list[Edit | None]:
    """The same for an attribute of an object, where one line of the file makes it: that line makes the variable."""
    root, _, attribute = (write.target or write.name).rpartition(".")
    tree, change = facts.tree(function.file), pastes.lines_of(facts, function.file, write.line)
    classes = (
        pastes.around(tree, write.line, ast.ClassDef)[-1:] if root == "self" else list(pastes.walk(tree, ast.ClassDef))
    )
    made = [
        one for holder in classes for one in ast.walk(holder)
        if isinstance(one, ast.Assign) and f"self.{attribute}" in [ast.unparse(target) for target in one.targets]
        and one.lineno != write.line
    ]  # fmt: skip
    if len(made) != 1 or change is None or len(change[1]) != 1 or not root.isidentifier():
        return []
    value = made[0].value
    if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("Variable"):
        return []
    tf = pastes.module(facts, function.file, "tensorflow") or "tf"
    number = isinstance(value, ast.Constant) and isinstance(value.value, int) and not isinstance(value.value, bool)
    fractions = number and (_in_fractions(tree, attribute) or _beside_floats(facts, function, f"{root}.{attribute}"))
    kind = f", dtype={tf}.float32" if fractions else ""
    return [
        Edit(str(function.file), write.line, write.line, (f"{change[0]}{inside}",)),
        *_read_in_ops(facts, function, f"{root}.{attribute}", write.line),
        pastes.replaced(
            facts, function.file, {value: f"{tf}.Variable({pastes.text_of(facts, function.file, value)}{kind})"}
        ),
    ]


def _in_fractions(tree: ast.AST | None, attribute: str) -> bool:
    """Whether an attribute is computed with fractions as it is: then a variable of whole numbers does not fit."""
    for one in pastes.walk(tree, ast.BinOp):
        parts = list(code.operands(one))
        if any(isinstance(part, ast.Attribute) and part.attr == attribute for part in parts) and any(
            isinstance(part, ast.Div) or (isinstance(part, ast.Constant) and isinstance(part.value, float))
            for part in parts
        ):
            return True
    return False


def _beside_floats(facts: Facts, function: Function, name: str) -> bool:
    """Whether a traced function computes with a name and an argument of fractions: TensorFlow takes one dtype only."""
    signature = next((one.signature for one in reversed(facts.traces) if one.function == function.id), "")
    floats = set(re.findall(r"\b(\w+): b?float\d+\[", signature))
    return code.computed_together(facts.definition(function.file, function.line), name, floats)


def _whole(facts: Facts, function: Function, name: str) -> bool:
    """Whether the file gives a name a whole number."""
    given = [
        one.value for one in pastes.walk(facts.tree(function.file), ast.Assign)
        if name in [ast.unparse(target) for target in one.targets]
    ]  # fmt: skip
    return bool(given) and all(isinstance(one, ast.Constant) and type(one.value) is int for one in given)


def _sets(write: code.Write) -> bool:
    """`self.size = x.shape[0]`: what a function of a dataset finds out once, and may mean so."""
    statement = syntax.parse(write.text).body[0]
    if not isinstance(statement, ast.Assign):
        return False
    return not any(isinstance(one, ast.expr) and ast.unparse(one) == write.target for one in ast.walk(statement.value))


def _made_once(function: Definition, write: code.Write) -> bool:
    """`if key not in made: made[key] = ...`: what is to happen once."""
    for one in code.own_nodes(function):
        test = one.test if isinstance(one, ast.If) else None
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn) and len(test.ops) == 1:
            target = f"{ast.unparse(test.comparators[0])}[{ast.unparse(test.left)}]"
            if target == write.target and any(part.lineno == write.line for part in one.body):  # type: ignore[attr-defined]
                return True
    return False


def _of_tensorflow(write: code.Write) -> bool:
    """What is part of the graph (metrics, assignments), and what the first trace makes on purpose, as variables."""
    text = write.text
    if _assigns(write) and write.target.endswith(_BY_KERAS):
        return True
    return any(word in text for word in ("Variable(", "keras.", ".assign", ".update_state")) or "metric" in text.lower()
