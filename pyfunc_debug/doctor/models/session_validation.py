"""A session's run that only evaluates, on elements that a body of the training's input draws random numbers for."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.draws.altering_draws import altering_draw
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.doctor.graphs.session_lines import Body, SessionLine, body_of, session_lines
from pyfunc_debug.records import Finding, Node

_EVALUATES = re.compile(
    r"(?<![a-z])(valid|validat[a-z]*|eval[a-z]*|test[a-z]*|embed[a-z]*|infer[a-z]*|predict[a-z]*)(?![a-z])"
    r"|(?<![a-z_])val[ _-][a-z]"
)
"""In names and texts. `loss_val` is a value."""
_ASIDE = re.compile(r"tta|augment|summar|debug|show|plot")
"""In what a line's results or its function are called: several turns of each element, or a look at what there is."""
_OF_TRAINING = re.compile(r"train(?!able)")
"""In what a line's results are called."""
_FLAG = re.compile(r"train|augment|phase|test|eval|mode|infer", re.IGNORECASE)
"""In a test in a body: it may draw for the training alone."""
_LOOPS = (ast.For, ast.While)


def findings(facts: Facts, rule: str) -> Iterator[Finding]:
    """One finding a body.

    Args:
      facts: The recording.
      rule: The finding's name.
    """
    lines = session_lines(facts)
    trainings = [one for one in lines if one.trains]
    told: set[Body] = set()
    for line in lines if trainings else ():
        if line.changes or not line.variables or not _evaluates(facts, line, trainings):
            continue
        for body, nodes in line.nodes.items():
            training = next((one for one in trainings if body in one.nodes), None)
            if training is None or body in told or not _comes_first(line, body) or not _comes_first(training, body):
                continue
            found = _finding(facts, rule, line, training, nodes[0])
            if found is not None:
                told.add(body)
                yield found


def _comes_first(line: SessionLine, body: Body) -> bool:
    """Whether a body makes what the model gets, and not something of what it gave."""
    return body in line.read or not line.step.get(body, True)


def _evaluates(facts: Facts, line: SessionLine, trainings: list[SessionLine]) -> bool:
    """Whether a run looks at how good the model is, or at what it gives, and not at the training's own numbers."""
    own = pastes.source(facts, line.file)
    statement = own.statement(line.line)
    if statement is None or any(one.file == line.file and one.line == line.line for one in trainings):
        return False
    around = list(own.around(statement))
    function = next((one for one in around if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))), None)
    names = "\n".join(_called(own, statement)).lower()
    called = function.name.lower() if function is not None else ""
    if _OF_TRAINING.search(names) or _ASIDE.search(names) or _ASIDE.search(called) or _averaged(own, statement):
        return False
    if os.path.basename(line.file).startswith("test"):
        called = called.removeprefix("test_")
    headers = [ast.unparse(one.test).lower() for one in around if isinstance(one, ast.If)]
    if _EVALUATES.search("\n".join([names, called, *headers])):
        return True
    if not line.elements or any("gradients" in one for one in line.fetches):
        return False
    loops = {id(one) for one in around if isinstance(one, _LOOPS)}
    inner = next((one for one in around if isinstance(one, _LOOPS)), None)
    beside = [own.statement(one.line) for one in trainings if one.file == line.file]
    inside = [{id(each) for each in own.around(one) if isinstance(each, _LOOPS)} for one in beside if one is not None]
    return inner is not None and not any(id(inner) in one or (loops and loops <= one) for one in inside)


def _called(own: Source, statement: ast.stmt) -> Iterator[str]:
    """What the results of a statement are called: by its targets, its texts, and the lists that they are put into."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    for target in targets:
        yield ast.unparse(target)
    for one in ast.walk(statement):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value
        elif isinstance(one, ast.Call) and pastes.last_name(one.func) in ("append", "extend"):
            yield ast.unparse(one.func)
        elif isinstance(one, ast.Call) and pastes.last_name(one.func) == "run" and one.args:
            yield ast.unparse(one.args[0])


def _averaged(own: Source, statement: ast.stmt) -> bool:
    """Whether what a line collects is averaged turn by turn: several runs for each element, on purpose."""
    lists = [
        ast.unparse(one.func.value) for one in ast.walk(statement)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in ("append", "extend")
    ]  # fmt: skip
    if isinstance(statement, ast.Assign):
        lists += [ast.unparse(one) for one in statement.targets]
    for call in pastes.walk(own.tree, ast.Call):
        if pastes.last_name(call.func) in ("mean", "average", "median") and call.args:
            axis = pastes.argument(call, 1, "axis")
            if ast.unparse(call.args[0]) in lists and axis is not None and ast.unparse(axis) == "0":
                return True
    return any(isinstance(one, ast.AugAssign) for one in ast.walk(statement)) and not isinstance(statement, ast.Expr)


def _flagged(function: Definition) -> bool:
    """Whether a body may draw for the training alone: a test of it asks for a parameter, or for a flag."""
    own = set(code.parameters(function))
    for one in ast.walk(function):
        tests = (
            [one.test] if isinstance(one, (ast.If, ast.IfExp)) else one.values if isinstance(one, ast.BoolOp) else []
        )
        for test in tests:
            plain = test.operand if isinstance(test, ast.UnaryOp) else test
            if (isinstance(plain, ast.Name) and plain.id in own) or _FLAG.search(ast.unparse(test)):
                return True
    return False


def _finding(facts: Facts, rule: str, line: SessionLine, training: SessionLine, node: Node) -> Finding | None:
    function, draw = facts.function(node), altering_draw(facts, node)
    if function is None or draw is None or _flagged(function):
        return None
    name, body = facts.name(node), body_of(node)
    kinds = line.read.get(body)
    where = "the graph" if kinds is None else "the queue" if "Queue" in kinds else "the Dataset"
    shared = bool({one.id for one in line.nodes[body]} & {one.id for one in training.nodes[body]})
    what = f"the same as for the training in line {training.line}" if shared else f"as that of line {training.line}"
    return Finding(
        rule, "note", node.id, (),
        f"{name} draws random numbers, and stands in {where} that line {line.line} reads, which fetches no train op: "
        f"{what}. What is evaluated there are altered elements, other ones in each run, and the results go up and "
        "down although the model is the same",
        _fix(name, kinds, line, training), line.file, line.line,
        evidence=(
            f"{facts.source_line(node.file, draw.line)}: {draw.text}",
            f"{facts.source_line(line.file, line.line)}: {facts.line(line.file, line.line)}",
        ),
        confidence="likely",
    )  # fmt: skip


def _fix(name: str, kinds: set[str] | None, line: SessionLine, training: SessionLine) -> str:
    if kinds is None:
        return (
            "is_training = tf.compat.v1.placeholder_with_default(False, ()), and x = tf.cond(is_training, lambda: "
            f"(what calls {name}), lambda: x); feed is_training: True in line {training.line} alone"
        )
    if "Queue" in kinds:
        return (
            f"make a second queue without {name}, and feed its batches in line {line.line} in place of the training's: "
            "session.run(..., feed_dict={image_batch: session.run(plain_batch)})"
        )
    return (
        f"make a second Dataset for line {line.line}, without {name}, and feed its batches in place of the training's: "
        "session.run(..., feed_dict={x: plain_x, y: plain_y}), with plain_x, plain_y = session.run(its get_next())"
    )
