"""Calls in which nothing moved for long: where they stand, and what they wait for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.datasets import rebound_datasets
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.waits import ended_children, enqueuers, forked_pools, gathered, handed
from pyfunc_debug.doctor.waits.unlocked import unlocked
from pyfunc_debug.program.waiting import FOR_PROCESSES
from pyfunc_debug.records import Finding

NAMES = ("hang",)
_OF_KERAS = {"predict", "fit", "evaluate", "predict_on_batch", "train_on_batch", "test_on_batch"}
"""Methods of a model that run a tf.function."""
_LOCK = re.compile(r"the lock ([\w.]+)")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body and line at which its calls stood."""
    groups: dict[tuple[object, ...], list[tuple[int | None, int, dict[str, object]]]] = {}
    rows = facts.reader.rows("SELECT id FROM call WHERE status = 'running'")
    running = {number for (number,) in rows}
    by_hand = {call for _, call, stop in facts.notices["stop"] if stop.get("interrupted")}
    for node, call, noticed in facts.notices["hang"]:
        if noticed.get("working"):  # no hang, if it ended
            gathers = noticed.get("again") and noticed.get("yields")
            if call is not None and (call in running | by_hand or gathers):
                yield _endless(facts, node, call, noticed, call not in running)
            continue
        if facts.notices["forked"] and (noticed["what"] in FOR_PROCESSES or not noticed["frames"]):
            continue  # the finding forked-process says it
        frames = noticed["frames"]
        place = tuple(frames[-1][:2]) if frames else (None, None)
        body = facts.nodes[node].body if node is not None else "a call"
        groups.setdefault((body, *place, noticed["what"]), []).append((node, call or 0, noticed))
    for (name, file, line, what), found in groups.items():
        node, call, noticed = found[0]
        calls = tuple(number for _, number, _ in found if number)
        ended = calls and not running.intersection(calls)
        waits = f"waited for {what}" if what else "was in C code, where Python cannot look"
        age = max(float(str(one["age_s"])) for _, _, one in found)
        several = f"{len(found):,} calls of {name}" if len(found) > 1 else f"call #{call} of {name}"
        if noticed.get("main"):
            several = "the main thread"
        after = " They went on later" if ended and len(found) > 1 else " It went on later" if ended else ""
        pool = max(int(str(one["pool"])) for _, _, one in found)
        held, more = _held(facts, noticed, bool(ended))
        message = f"nothing moved in {several} for {age:.0f} s: it {waits}.{held}{after}"
        if pool and not ended:
            message += (
                f" {pool} calls waited at once, no fewer than TensorFlow's pool has threads: nobody was left to do "
                "what they waited for"
            )
        dead: dict[str, Any] = noticed.get("dead") or {}  # type: ignore[assignment]
        if dead:
            died = "had died" if ended else "died"
            message = (
                f"{message.rstrip('.')}. {dead['thread']}, which calls {dead['does']} in "
                f"{facts.source_line(dead['does_file'], dead['at'])}, {died} of {dead['error']} at "
                f"{facts.source_line(dead['file'], dead['line'])}"
            )
            more = [*more, f"{dead['thread']}: {facts.source_line(dead['file'], dead['line'])} "
                    f"{facts.line(dead['file'], dead['line'])}".rstrip()]  # fmt: skip
        in_keras: dict[str, Any] = noticed.get("keras") or {}  # type: ignore[assignment]
        if not dead and in_keras:
            message = f"{message.rstrip('.')}.{enqueuers.sentence(in_keras, bool(ended))}"
        elif not dead and "queue" in str(what) and not ended:
            nobody = "took one out" if "room" in str(what) else "put one in"
            message = f"{message.rstrip('.')}. Nobody {nobody}: whoever should is at its end, waits itself, or failed"
        gone: list[dict[str, Any]] = noticed.get("ended") or []  # type: ignore[assignment]
        if gone:
            message = f"{message.rstrip('.')}.{ended_children.sentence(gone, int(str(noticed['alive'])))}"
        forked = None if gone else forked_pools.found(facts, file, line, str(what))
        if forked is not None:
            message = f"{message.rstrip('.')}.{forked.text}"
        rebound = None if dead or gone else rebound_datasets.told(facts, node)
        if rebound is not None:
            more = [f"because {rebound[0]}", *more]
        frames = noticed["frames"]
        lines = frames if isinstance(frames, list) else []
        evidence = [f"{facts.source_line(one[0], one[1])} {one[3]}".rstrip() for one in lines]
        evidence = [*evidence[-4:], *more]
        fixed = _of_lock(facts, noticed, str(name)) or handed.over(facts, dead, file, line)
        fix = ended_children.fix(facts, file, line, gone)
        fix = fix or enqueuers.fix(facts, file, line, in_keras)
        fix = fix or (fixed[2] if fixed is not None else "") or _timed(facts, file, line, str(what), pool)
        if fixed is not None and fixed[0]:
            file, line = fixed[:2]
        if rebound is not None and rebound[1]:
            fix, file, line = rebound[1:]
        fix = fix or (
            forked.fix
            if forked is not None
            else _own_session(facts, file, line)
            or _iterated(facts, file, line, str(what))
            or _fix(facts, str(what), pool, _calls_function(facts, file, line))
        )
        yield Finding(
            "hang", "warning" if ended else "error", node, calls, message.rstrip("."), fix,
            str(file) if file is not None else None, line if isinstance(line, int) else None,
            evidence=tuple(evidence), confidence="likely",
        )  # fmt: skip


def _held(facts: Facts, noticed: dict[str, Any], ended: bool) -> tuple[str, list[str]]:
    """Who holds the lock that a call waits for, as a sentence, and those lines as evidence."""
    held = noticed.get("holder")
    if held is None or held["itself"]:
        return "", []
    taken, now = (facts.source_line(held["file"], line) for line in (held["taken"], held["line"]))
    who = f"call #{held['call']}" if held["call"] else held["thread"]
    text = f" {who} took it at {taken}"
    if held["call"]:
        other = _notice_of(facts, held["call"])
        text += f", and {'waits' if not ended else 'waited'} for {other.get('what') or 'what is in C'}"
    elif held["tensorflow"]:
        text += f", and was in TensorFlow at {now} with it" + ("" if ended else ": each waits for the other")
    else:
        text += f", and was at {now} with it"
    lines = dict.fromkeys((held["taken"], held["line"]))
    evidence = [
        f"{who}: {facts.source_line(held['file'], line)} {facts.line(held['file'], line)}".rstrip() for line in lines
    ]
    return f"{text}.", evidence


def _notice_of(facts: Facts, call: int) -> dict[str, Any]:
    """What was noticed of another call that stood still."""
    return next((one for _, number, one in facts.notices["hang"] if number == call), {})


def _of_lock(facts: Facts, noticed: dict[str, Any], body: str) -> tuple[str, int, str] | None:
    """The fix for a lock whose holder is known, with the line that it is for: "" and 0 for that of the call."""
    held = noticed.get("holder")
    if held is None:
        return None
    file, taken, line = held["file"], held["taken"], held["line"]
    if held["itself"]:
        return "", 0, _again(facts, noticed) or "threading.RLock()  # a thread may take it again while it holds it"
    if held["call"]:
        other = _notice_of(facts, held["call"])
        if (other.get("holder") or {}).get("call"):
            return "", 0, "dataset.map(..., num_parallel_calls=1)  # or take the locks in one order everywhere"
        return "", 0, f"change first what call #{held['call']} waits for: {other.get('what') or 'C code'}"
    if not held["tensorflow"]:
        return None
    words = (
        f"take the lock around the statements that need it, and not around {facts.source_line(file, line)}: that line "
        f"waits for calls of {body}, which take it"
    )
    return file, taken, unlocked(facts, file, taken, line) or words


def _again(facts: Facts, noticed: dict[str, Any]) -> str:
    """The line that makes a lock, with one that its thread may take again."""
    found = _LOCK.match(noticed["what"])
    last = found[1].rpartition(".")[2] if found is not None else ""
    files = dict.fromkeys((noticed["holder"]["file"], *(one[0] for one in noticed["frames"])))
    made = [
        (file, one.value)
        for file in files
        for one in pastes.walk(facts.tree(file), ast.Assign)
        if isinstance(one.value, ast.Call) and ast.unparse(one.value.func).rpartition(".")[2] == "Lock"
        and last in [ast.unparse(target).rpartition(".")[2] for target in one.targets]
    ]  # fmt: skip
    if len(made) != 1:
        return ""
    file, call = made[0]
    new = pastes.text_of(facts, file, call.func).removesuffix("Lock") + "RLock()"
    return pastes.written(pastes.replaced(facts, file, {call: new})) if "." in new else ""


def _endless(facts: Facts, node: int | None, call: int, noticed: dict[str, Any], over: bool) -> Finding:
    """A call that worked, and did not end; or one of a generator that took pieces of data, and yielded late if at all.

    Args:
      facts: The recording.
      node: The call's node.
      call: Its number.
      noticed: What was seen of it.
      over: Whether it ended.
    """
    file, lines = str(noticed["frames"][0][0]), list(noticed["lines"])
    body = facts.nodes[node].body if node is not None else "a call"
    where = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} to {lines[-1]}"
    live = facts.meta.get("state") == "recording"  # it may still end
    ended = "has not ended: it has worked" if live else "did not end: it worked"
    text = f"call #{call} of {body} {ended} for {noticed['age_s']:.0f} s and more"
    text += f", and was in {where} each of {noticed['working']} times that it was looked at"
    if noticed.get("again") and noticed.get("yields"):
        none = "yielded nothing" if over else "has yielded nothing" if live else "never yielded: it worked"
        text = f"call #{call} of {body} {none} for {noticed['age_s']:.0f} s and more"
    text += gathered.sentence(facts, noticed, not live)
    loops = [one for line in lines for one in pastes.around(facts.tree(file), line, ast.While)]
    loop = max(loops, key=lambda one: one.lineno, default=None)
    within = range(loop.lineno, (loop.end_lineno or loop.lineno) + 1) if loop is not None else ()
    empty = next(((line, name) for line, name in noticed["empty"] if line in within), None)
    fix = "for turn in range(10_000):  # in place of a loop that waits for what may never be"
    indent = pastes.indent(facts, file, loop.lineno) if loop is not None else None
    if empty is not None and loop is not None:
        text += f". {empty[1]} is empty, so that line {empty[0]} does nothing"
        checked = f"if len({empty[1]}) == 0:", f"    raise ValueError({f'{empty[1]} is empty'!r})"
        fix = pastes.written(pastes.above(facts, file, loop.lineno, *checked)) or fix
    elif loop is not None and (stuck := _stuck(facts, file, loop, dict(noticed.get("same") or ()))) is not None:
        text += stuck[0]
        fix = stuck[1]
    elif loop is not None and indent is not None and _waits(loop.test):
        fix = pastes.written(Edit(file, loop.lineno, loop.lineno, (f"{indent}for turn in range(10_000):",)))
    elif loop is not None:
        fix = f"let what `{ast.unparse(loop.test)}` reads change in each turn of the loop of line {loop.lineno}"
    shown = [(file, line) for line in lines[:4]]
    if noticed.get("again"):
        shown = list(dict.fromkeys((str(one[0]), int(one[1])) for one in noticed["frames"]))[-4:]
        fix = gathered.fix(facts, noticed) or fix
    evidence = tuple(f"{facts.source_line(*one)} {facts.line(*one).strip()}" for one in shown)
    return Finding(
        NAMES[0], "warning" if live or over else "error", node, (call,), text, fix, file, lines[0], evidence=evidence,
        confidence="measured" if empty is not None else "likely",
    )  # fmt: skip


def _waits(test: ast.expr) -> bool:
    """Whether a loop goes on until something else happens: `while True`, `while not queue.empty()`."""
    called = [one.func for one in ast.walk(test) if isinstance(one, ast.Call)]
    return isinstance(test, ast.Constant) or any(isinstance(one, ast.Attribute) for one in called)


def _stuck(facts: Facts, file: str, loop: ast.While, same: dict[str, str]) -> tuple[str, str] | None:
    """What a loop's test reads and its body changes, but never did: a sentence, and a fix; None where there is none.

    Args:
      facts: The recording.
      file: The user's file.
      loop: The loop.
      same: Variables of the body that had one value each time that it was looked at.
    """
    read = [one.id for one in ast.walk(loop.test) if isinstance(one, ast.Name)]
    steps = [one for one in loop.body if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name)]
    steps = [one for one in steps if one.target.id in read and one.target.id in same]  # type: ignore[union-attr]
    if len(steps) != 1:
        return None
    step, name = steps[0], ast.unparse(steps[0].target)
    change = facts.line(file, step.lineno)
    text = f". {name} was {same[name]} each time, and the loop ends by it"
    skips = [
        one for before in loop.body if before.lineno < step.lineno for one in _in_this_loop(before)
        if isinstance(one, ast.Continue) and not isinstance(before, (ast.For, ast.While))
    ]  # fmt: skip
    found = pastes.lines_of(facts, file, skips[0].lineno) if len(skips) == 1 else None
    if found is None:
        return text, f"let {name} change on each way through the loop of line {loop.lineno}, as line {step.lineno} does"
    line = skips[0].lineno
    text += f": `continue` in line {line} leaves out `{change}` (line {step.lineno})"
    return text, pastes.written(Edit(file, line, line, (f"{found[0]}{ast.unparse(step)}", *found[1])))


def _in_this_loop(statement: ast.AST) -> Iterator[ast.AST]:
    """What is in a statement, without loops and functions inside of it, which have a `continue` of their own."""
    yield statement
    for one in ast.iter_child_nodes(statement):
        if not isinstance(one, (ast.For, ast.While, ast.AsyncFor, ast.FunctionDef, ast.Lambda)):
            yield from _in_this_loop(one)


def _timed(facts: Facts, file: object, line: object, what: str, pool: int) -> str:
    """The user's line with an end to its waiting, where it raises then; "" where it has no such call."""
    lock = _LOCK.match(what)
    if lock is not None and isinstance(file, str) and isinstance(line, int):
        return _tried_first(facts, file, line, lock[1])
    if "queue" not in what or not isinstance(file, str) or not isinstance(line, int):
        return ""
    if "room" in what:
        return _with_room(facts, file, line)
    if pool:
        return ""
    calls = [
        one for one in pastes.around(facts.tree(file), line, ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "get" and not one.args and not one.keywords
    ]  # fmt: skip
    if len(calls) != 1:
        return ""
    call = calls[0]
    ended = _ended(facts, file, line, call)
    if ended:
        return ended
    return pastes.written(pastes.replaced(facts, file, {call: f"{pastes.text_of(facts, file, call.func)}(timeout=60)"}))


def _tried_first(facts: Facts, file: str, line: int, lock: str) -> str:
    """Lines above a `with` or `acquire()` that raise where the lock does not come free."""
    text = facts.line(file, line).strip()
    if text not in (f"with {lock}:", f"{lock}.acquire()"):
        return ""
    return pastes.written(
        pastes.above(
            facts, file, line, f"if not {lock}.acquire(timeout=10):",
            f"    raise RuntimeError({f'{lock} was not free for 10 s: who holds it?'!r})", f"{lock}.release()",
        )
    )  # fmt: skip


def _ended(facts: Facts, file: str, line: int, call: ast.Call) -> str:
    """A generator that ends where nothing came for a while: who put elements in tells nobody that there are no more."""
    functions = pastes.around(facts.tree(file), line, ast.FunctionDef)
    yields = functions and any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in code.own_nodes(functions[-1]))
    whole, module = pastes.lines_of(facts, file, line), pastes.module(facts, file, "queue")
    empty = f"{module}.Empty" if module else pastes.module(facts, file, "queue.Empty")
    timed = pastes.replaced(facts, file, {call: f"{pastes.text_of(facts, file, call.func)}(timeout=10)"})
    if not yields or whole is None or not empty or timed is None or timed.first != timed.last:
        return ""
    blanks = whole[0]
    lines = (
        f"{blanks}try:", f"{blanks}    {timed.lines[0].strip()}",
        f"{blanks}except {empty}:  # nothing for 10 s: those who put elements in have ended", f"{blanks}    return",
    )  # fmt: skip
    return pastes.written(Edit(file, timed.first, timed.last, lines))


def _with_room(facts: Facts, file: str, line: int) -> str:
    """A full queue without its bound where nobody takes from it; else its put() with an end to the waiting."""
    tree = facts.tree(file)
    puts = [
        one for one in pastes.around(tree, line, ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "put" and len(one.args) == 1 and not one.keywords
    ]  # fmt: skip
    if len(puts) != 1 or not isinstance(puts[0].func, ast.Attribute):
        return ""
    name = ast.unparse(puts[0].func.value)
    calls = [one for one in pastes.walk(tree, ast.Call) if isinstance(one.func, ast.Attribute)]
    taken = {ast.unparse(one.func.value) for one in calls if one.func.attr in ("get", "get_nowait")}  # type: ignore[attr-defined]
    made = [
        one.value for one in pastes.walk(tree, ast.Assign)
        if name in [ast.unparse(target) for target in one.targets]
    ]  # fmt: skip
    bound = made[0] if len(made) == 1 and isinstance(made[0], ast.Call) else None
    used = [one for one in pastes.walk(tree, ast.Name) if one.id == name and isinstance(one.ctx, ast.Load)]
    handed = "." in name or any(not isinstance(pastes.source(facts, file).parent(one), ast.Attribute) for one in used)
    if bound is not None and not taken & {name} and not handed and len(bound.args) + len(bound.keywords) == 1:
        return pastes.written(pastes.replaced(facts, file, {bound: f"{pastes.text_of(facts, file, bound.func)}()"}))
    put = f"{pastes.text_of(facts, file, puts[0])[:-1]}, timeout=60)"
    return pastes.written(pastes.replaced(facts, file, {puts[0]: put}))


def _own_session(facts: Facts, file: object, line: object) -> str:
    """A session with threads of its own for a body that runs one; words where it is not seen how it is made."""
    if not isinstance(file, str) or not isinstance(line, int):
        return ""
    asked = [
        one for one in pastes.around(facts.tree(file), line, ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "run"
        and isinstance(one.func.value, ast.Name) and "sess" in one.func.value.id.lower()
    ]  # fmt: skip
    if len(asked) != 1 or not isinstance(asked[0].func, ast.Attribute):
        return ""
    session = ast.unparse(asked[0].func.value)
    made = [
        one for one in pastes.walk(facts.tree(file), ast.Assign)
        if session in [ast.unparse(target) for target in one.targets] and isinstance(one.value, ast.Call)
        and pastes.last_name(one.value.func) in ("Session", "InteractiveSession")
    ]  # fmt: skip
    taken = any(one.id == "within" for one in pastes.walk(facts.tree(file), ast.Name))
    if len(made) == 1 and isinstance(made[0].value, ast.Call) and not taken:
        call, end = made[0].value, made[0].end_lineno or made[0].lineno
        maker, blanks = pastes.text_of(facts, file, call.func), pastes.indent(facts, file, made[0].lineno)
        threads = f"{''.join(maker.rpartition('.')[:2])}ConfigProto(use_per_session_threads=True)"
        own = f"within = {maker}(graph={session}.graph, config={threads})  # has no variables' values of {session}"
        edit = pastes.replaced(facts, file, {asked[0].func: "within.run"})
        if edit is not None and blanks is not None:
            return pastes.written(edit, Edit(file, end + 1, end, (f"{blanks}{own}",)))
    return (
        f"compute in NumPy what {session}.run computes there, or use a session with threads of its own, made once: "
        "Session(graph=..., config=ConfigProto(use_per_session_threads=True))"
    )


def _iterated(facts: Facts, file: Any, line: Any, what: str) -> str:
    """What to do where the line that waits for TensorFlow loops over a dataset."""
    loops = [one for one in pastes.around(facts.tree(file), line, ast.For) if one.lineno == line] if line else []
    if "TensorFlow" not in what or not loops:
        return ""
    return (
        f"loop over {short(ast.unparse(loops[0].iter), 40)} outside of the body: what makes its elements needs threads "
        "of the pool that these calls hold, or is this body again"
    )


def _calls_function(facts: Facts, file: Any, line: Any) -> bool:
    """Whether a line calls a tf.function of the program, or what Keras makes one of."""
    calls = pastes.around(facts.tree(file), line, ast.Call) if line else []
    called = {pastes.last_name(one.func) for one in calls}
    made = {
        name for one in facts.files for part in pastes.walk(facts.tree(one), ast.AST)
        for name in _functions_made(part)
    }  # fmt: skip
    return bool(called & (made | _OF_KERAS))


def _functions_made(part: ast.AST) -> Iterator[str]:
    """The name to which a statement gives a tf.function."""
    if isinstance(part, ast.FunctionDef):
        given = [one.func if isinstance(one, ast.Call) else one for one in part.decorator_list]
        yield from (part.name for one in given if pastes.last_name(one) == "function")
    elif isinstance(part, ast.Assign) and isinstance(part.value, ast.Call):
        made = pastes.last_name(part.value.func)
        if made in ("function", "get_concrete_function"):
            yield from (pastes.last_name(one) for one in part.targets)


def _fix(facts: Facts, what: str, pool: int, calls_function: bool) -> str:
    if "TensorFlow" in what and not calls_function:
        return (
            "do outside of the body what that line asks of TensorFlow, or in NumPy: TensorFlow may need for it the "
            "threads that such calls hold"
        )
    if "TensorFlow" in what:
        return (
            "tf.config.run_functions_eagerly(True)  # to see whether it is the tf.function that this body calls; then "
            "call the plain Python function in the body, and the tf.function outside of it"
        )
    if "room in a queue" in what:
        return (
            "timeout=60  # as an argument of put() in that line: it then raises queue.Full instead of waiting forever"
        )
    lock = _LOCK.match(what)
    if lock is not None:
        return f"if not {lock[1]}.acquire(timeout=10): raise RuntimeError('who holds it?')  # in place of that line"
    if pool:
        return "dataset.map(..., num_parallel_calls=1)  # or let the bodies return instead of waiting for each other"
    if "queue" in what:
        return (
            "timeout=60  # as an argument of get() in that line: it then raises queue.Empty instead of waiting forever"
        )
    if "standard input" in what:
        return "< /dev/null  # after your command: input() raises EOFError then; a file there can hold the answers"
    if "event" in what or "condition" in what:
        return "event.wait(timeout=10)  # in that line, and look at what it returns"
    if "thread" in what:
        return "thread.join(timeout=10)  # in that line, and look at thread.is_alive()"
    return "import faulthandler; faulthandler.dump_traceback_later(30)  # in the body: prints where C was called from"
