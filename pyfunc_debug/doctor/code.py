"""What the source of a body says: which names it writes into, which state it shares, which random numbers it draws."""

from __future__ import annotations

import ast
import builtins
import re
import weakref
from collections.abc import Collection, Iterator
from dataclasses import dataclass

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_IN_PLACE = {"sort", "fill", "partition", "resize", "itemset", "byteswap", "setfield", "put"}
"""Methods of an array that change it."""
_CONTAINERS = {"dict", "list", "set", "defaultdict", "OrderedDict", "Counter", "deque"}
_SHUFFLERS = {"shuffle", "put", "copyto", "place", "putmask", "fill_diagonal"}
"""Functions that change their first argument."""
_GROWS = {
    "append",
    "extend",
    "add",
    "update",
    "insert",
    "appendleft",
    "pop",
    "popleft",
    "remove",
    "clear",
    "setdefault",
}
"""Methods of Python's containers that change them."""
SHARED = ("np.random", "numpy.random", "random")
"""Modules that draw from the generators that a process shares: NumPy's and Python's global ones."""
_UNSEEDED = re.compile(
    r"(?:(?:np|numpy)\.random\.(?:default_rng|RandomState)|random\.(?:Random|SystemRandom))\(\)$"
    r"|tf\.(?:random\.(?!stateless|experimental|set_seed|Generator|get_)|image\.random_|nn\.dropout|keras\.random\.)"
)
_MAKERS = {
    *(f"{numpy}.random.{name}" for numpy in ("np", "numpy") for name in ("default_rng", "RandomState", "Generator")),
    "default_rng",
    "RandomState",
    "random.Random",
    "random.SystemRandom",
}
_OF_TENSORFLOW = re.compile(r"(?:\w+\.)*random\.(?:experimental\.)?(?:Generator(?:\.from_\w+)?|get_global_generator)$")
"""Generators that keep their state in a variable: a draw at trace is an operation, which runs with each call."""
_GENERATORS = {"default_rng", "RandomState", "Generator", "SeedSequence", "Random", "SystemRandom", "seed"}


@dataclass(frozen=True)
class Write:
    """A statement that changes something: at a line, the name it begins with, its text, and all that it changes.

    A draw of random numbers has the name of what it calls, too, as its module has it: "random.randint", and whether
    it is a draw of TensorFlow's, which runs with each call of a graph.
    """

    line: int
    name: str
    text: str
    target: str = ""
    called: str = ""
    in_graph: bool = False


@dataclass(frozen=True)
class _Generator:
    """A generator of random numbers that a file makes."""

    seeded: bool
    tensorflow: bool


def parameters(function: Definition) -> list[str]:
    """Names of a function's parameters, in order."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    extra = [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    return [one.arg for one in (*every, *extra)]


def local_names(function: Definition) -> set[str]:
    """Names that a function binds: parameters, and what it assigns, without `global` and `nonlocal` ones."""
    found, outer = set(parameters(function)), set()
    for node in own_nodes(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            outer.update(node.names)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update((one.asname or one.name).partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
    return found - outer


def made_once(function: Definition) -> set[str]:
    """Parameters whose default is a container, made once with the function: `vocab={}`. Calls without one share it."""
    given = function.args
    known = [*given.posonlyargs, *given.args]
    pairs = [*zip(known[len(known) - len(given.defaults) :], given.defaults), *zip(given.kwonlyargs, given.kw_defaults)]
    held = {one.arg for one, default in pairs if default is not None and _is_container(default)}
    bound = (one.id for one in own_nodes(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    return held.difference(bound)


def _is_container(default: ast.expr) -> bool:
    made = ast.unparse(default.func).rpartition(".")[2] if isinstance(default, ast.Call) else ""
    return isinstance(default, (ast.Dict, ast.List, ast.Set)) or made in _CONTAINERS


def all_nodes(tree: ast.AST) -> list[ast.AST]:
    """Nodes of a tree in the order of `ast.walk`, of a file without its top. A file's are found once: all rules ask."""
    if not isinstance(tree, ast.Module):
        return list(ast.walk(tree))
    found = _nodes.get(tree)
    if found is None:
        # Without the top: a value that holds its key would keep both forever.
        found = _nodes[tree] = list(ast.walk(tree))[1:]
    return found


_nodes: weakref.WeakKeyDictionary[ast.AST, list[ast.AST]] = weakref.WeakKeyDictionary()


def own_nodes(function: Definition | ast.Module | ast.ClassDef) -> Iterator[ast.AST]:
    """Nodes of a function's or file's body in the order of the source, without those of functions defined in it."""
    todo: list[ast.AST] = [function.body] if isinstance(function, ast.Lambda) else list(function.body)
    while todo:
        node = todo.pop(0)
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            todo[:0] = list(ast.iter_child_nodes(node))


def root(node: ast.AST) -> str | None:
    """`x` of `x`, `x[0]`, `x.a[1].b`."""
    while isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def chain_root(node: ast.AST) -> str:
    """`ds` of `ds.skip(9).batch(2)`; "" where anything but calls and attributes is between, as in `np.load(f)["x"]`."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def called_name(node: ast.expr) -> str:
    """`norm` of `norm` and of `self.norm`; "" for what another object is asked for."""
    if isinstance(node, ast.Name):
        return node.id
    of_self = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if isinstance(node, ast.Attribute) and of_self else ""


def is_number(node: ast.expr) -> bool:
    """Whether an expression is a number that is written out."""
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def array_writes(function: Definition) -> list[Write]:
    """Statements that change an array in place, until its name is bound to something else."""
    found, bound = [], set()

    def note(node: ast.AST, target: ast.AST) -> None:
        name = root(target)
        if name is not None and name not in bound:
            found.append(Write(getattr(node, "lineno", function.lineno), name, ast.unparse(node)))

    for node in own_nodes(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript):
                    note(node, target)
                elif isinstance(target, ast.Name) and not _is_view(node.value, target.id):
                    bound.add(target.id)
        elif isinstance(node, ast.AugAssign):
            if isinstance(node.target, (ast.Name, ast.Subscript)):
                note(node, node.target)
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                if node.func.attr in _IN_PLACE and not _is_module(node.func.value):
                    note(node, node.func.value)
                elif node.func.attr in _SHUFFLERS and node.args and _is_module(node.func.value):
                    note(node, node.args[0])
            for keyword in node.keywords:
                if keyword.arg == "out":
                    note(node, keyword.value)
    return found


def _is_module(node: ast.AST) -> bool:
    return ast.unparse(node).partition(".")[0] in ("np", "numpy", "random", "rng", "tf", "scipy")


def _is_view(value: ast.AST, name: str) -> bool:
    """Whether an expression may still be the array itself: `np.asarray(x)`, `x.reshape(...)`, `x[...]`."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr in (
            "asarray",
            "ascontiguousarray",
            "atleast_1d",
            "atleast_2d",
            "ravel",
            "reshape",
            "squeeze",
        ):
            inside = value.args[0] if _is_module(value.func.value) and value.args else value.func.value
            return root(inside) == name
        return False
    return root(value) == name and not isinstance(value, ast.Name)


def reads(function: Definition, name: str) -> bool:
    """Whether a function takes a name from around itself."""
    if name in local_names(function):
        return False
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    return any(isinstance(part, ast.Name) and part.id == name for one in body for part in ast.walk(one))


def state_writes(function: Definition, items: bool = False) -> list[Write]:
    """Statements that change what outlives the call: globals, closures, attributes of `self`, outer containers.

    Args:
      function: Where to look.
      items: Also what is put into a container of a parameter's: `self.history[n] = loss`.
    """
    local = local_names(function) - made_once(function)
    found = []
    parameters_ = parameters(function)
    for node in own_nodes(function):
        targets: list[ast.AST] = []
        if isinstance(node, ast.Assign):
            targets = [one for one in node.targets if not isinstance(one, ast.Tuple)]
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GROWS:
            targets = [node.func.value]
        for target in targets:
            name = root(target)
            of_object = name in parameters_ and (
                isinstance(target, ast.Attribute)
                or ((items or isinstance(node, ast.Call)) and _is_part_of_object(target))
            )
            if name is not None and (name not in local or of_object) and not _is_module(target):
                if isinstance(target, ast.Name) and isinstance(node, (ast.Assign, ast.AugAssign)) and name in local:
                    continue
                line = getattr(node, "lineno", function.lineno)
                found.append(Write(line, name, ast.unparse(node), ast.unparse(target)))
    return found


def _is_part_of_object(target: ast.AST) -> bool:
    """`self.history["loss"]`: a part of what an attribute holds."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return isinstance(target, ast.Attribute)


def counters(function: Definition) -> list[Write]:
    """Of `state_writes`, those that read what they change: two at once may lose one."""
    lines = {
        node.lineno for node in own_nodes(function)
        if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Assign) and _counts(node))
    }  # fmt: skip
    return [one for one in state_writes(function) if one.line in lines]


def _counts(node: ast.Assign) -> bool:
    """`self.n = self.n + 1`, `counts[word] = counts.get(word, 0) + 1`: a sum of what is there."""
    if len(node.targets) != 1 or not isinstance(node.value, ast.BinOp):
        return False
    target, sides = node.targets[0], (node.value.left, node.value.right)
    if isinstance(target, ast.Subscript):
        asked = f"{ast.unparse(target.value)}.get({ast.unparse(target.slice)}"
        if any(isinstance(one, ast.Call) and ast.unparse(one).startswith((f"{asked},", f"{asked})")) for one in sides):
            return True
    return any(ast.unparse(one) == ast.unparse(target) for one in sides)


def global_random(function: Definition, tree: ast.AST | None = None) -> list[Write]:
    """Draws from generators that outlive the call: NumPy's and Python's global ones, and generators made outside.

    Args:
      function: Where to look, and in methods of its object that it calls; functions defined inside of it are left out.
      tree: The file that it is in, for generators that are made elsewhere: `rng = np.random.default_rng(1)`.
    """
    own, local = _variables(function), local_names(function)
    every = _generators(tree) if tree is not None else {}
    made = {name: one for name, one in every.items() if name not in local}
    holder = _class_of(function, tree)
    attributes = _held_generators(holder, tree) if holder is not None else {}
    shared = _shared_names(function, tree)
    found = []
    for node in own_nodes(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in own:
            head, _, last = shared.get(node.func.id, "").rpartition(".")
            if head in SHARED and last not in _GENERATORS:
                found.append(Write(node.lineno, head, ast.unparse(node), called=f"{head}.{last}"))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = ast.unparse(node.func)
            head, _, last = name.rpartition(".")
            head = shared.get(head, head)
            generator = attributes.get(head) or (made.get(head) if root(node.func) not in own else None)
            if generator is not None or (root(node.func) not in own and head in SHARED and last not in _GENERATORS):
                in_graph = generator is not None and generator.tensorflow
                found.append(Write(node.lineno, head, ast.unparse(node), called=f"{head}.{last}", in_graph=in_graph))
            method = _method(holder, last) if holder is not None and head == "self" else None
            if method is not None and method is not function:
                found += global_random(method, None if tree is None else tree)
    return found


def python_random(function: Definition, tree: ast.AST | None = None) -> list[Write]:
    """Of `global_random`, Python's own draws: those of a `tf.random.Generator` run with each call of a graph."""
    return [one for one in global_random(function, tree) if not one.in_graph]


def _shared_names(function: Definition | ast.ClassDef | None, tree: ast.AST | None) -> dict[str, str]:
    """What a file calls the modules that draw, and their functions: `{"rd": "random", "randint": "random.randint"}`."""
    found: dict[str, str] = {}
    inside = own_nodes(function) if function is not None else ()
    for one in (*inside, *(all_nodes(tree) if tree is not None else ())):
        if isinstance(one, ast.Import):
            for name in one.names:
                if name.asname and name.name == "numpy":
                    found[f"{name.asname}.random"] = "numpy.random"
                elif name.asname:
                    found[name.asname] = name.name
        elif isinstance(one, ast.ImportFrom) and not one.level:
            found.update({name.asname or name.name: f"{one.module}.{name.name}" for name in one.names})
    return {name: whole for name, whole in found.items() if whole.startswith(SHARED)}


def _class_of(function: Definition, tree: ast.AST | None) -> ast.ClassDef | None:
    """The class that a method stands in."""
    every = all_nodes(tree) if tree is not None else ()
    return next((one for one in every if isinstance(one, ast.ClassDef) and function in one.body), None)


def _method(holder: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((one for one in holder.body if isinstance(one, ast.FunctionDef) and one.name == name), None)


def _held_generators(holder: ast.ClassDef, tree: ast.AST | None) -> dict[str, _Generator]:
    """Attributes of a class's objects that hold generators of random numbers."""
    found: dict[str, _Generator] = {}
    every = _generators(tree) if tree is not None else {}
    shared = _shared_names(holder, tree)
    for one in ast.walk(holder):
        target = one.targets[0] if isinstance(one, ast.Assign) else None
        if not isinstance(one, ast.Assign) or not isinstance(target, ast.Attribute) or root(target) != "self":
            continue
        values = [one.value, *(given(holder, tree, one.value.id) if isinstance(one.value, ast.Name) else ())]
        for value in values:
            made = _generator(value, shared)
            if made is None and isinstance(value, ast.Name) and value is not one.value:
                made = every.get(value.id)
            if made is not None:
                found[ast.unparse(target)] = made
    return found


def given(holder: ast.ClassDef, tree: ast.AST | None, name: str) -> list[ast.expr]:
    """What the calls of a class give its __init__ for a parameter."""
    maker = _method(holder, "__init__")
    names = parameters(maker)[1:] if maker is not None else []
    if name not in names:
        return []
    calls = [
        one for one in (all_nodes(tree) if tree is not None else ())
        if isinstance(one, ast.Call) and ast.unparse(one.func) == holder.name
    ]  # fmt: skip
    found = [word.value for one in calls for word in one.keywords if word.arg == name]
    place = names.index(name)
    return [*found, *(one.args[place] for one in calls if place < len(one.args))]


def _variables(function: Definition) -> set[str]:
    """Names that a function binds and does not import: its `random` is not the module."""
    imported = {
        (one.asname or one.name).partition(".")[0]
        for node in own_nodes(function)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for one in node.names
    }
    return local_names(function) - imported


def _generators(tree: ast.AST) -> dict[str, _Generator]:
    """Names that a file gives to generators of random numbers."""
    found: dict[str, _Generator] = {}
    shared = _shared_names(None, tree)
    for node in all_nodes(tree):
        made = _generator(node.value, shared) if isinstance(node, ast.Assign) else None
        if isinstance(node, ast.Assign) and made is not None:
            found.update({target.id: made for target in node.targets if isinstance(target, ast.Name)})
    return found


def _generator(value: ast.expr, shared: dict[str, str]) -> _Generator | None:
    """The generator that an expression makes: NumPy's, Python's or TensorFlow's, not a user's class of such a name."""
    if not isinstance(value, ast.Call):
        return None
    name, seeded = ast.unparse(value.func), bool(value.args or value.keywords)
    head, _, last = name.rpartition(".")
    if (shared.get(name) or f"{shared.get(head, head)}.{last}".lstrip(".")) in _MAKERS:
        return _Generator(seeded, tensorflow=False)
    return _Generator(seeded, tensorflow=True) if _OF_TENSORFLOW.match(name) else None


def has_seed(tree: ast.AST, name: str) -> bool:
    """Whether a generator of a file, by its name or as an attribute of `self`, is made with a seed."""
    holders = (one for one in all_nodes(tree) if isinstance(one, ast.ClassDef)) if name.startswith("self.") else ()
    found = [_generators(tree).get(name), *(_held_generators(one, tree).get(name) for one in holders)]
    return any(one is not None and one.seeded for one in found)


def outside(function: Definition, tree: ast.AST, depth: int = 3) -> set[str]:
    """What a function reads that is neither its own nor a module, a class or a pure function of its file.

    A function without any of it gives the same for the same input, as far as its source tells.

    Args:
      function: Where to look.
      tree: The file that it is in.
      depth: How far functions of the file are followed.
    """
    modules: set[str] = set()
    variables: set[str] = set()
    functions: dict[str, ast.FunctionDef] = {}
    for node in all_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            variables.update(parameters(node))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            variables.add(node.id)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            modules.update((one.asname or one.name).partition(".")[0] for one in node.names)
        elif isinstance(node, ast.FunctionDef):
            functions[node.name] = node
        elif isinstance(node, ast.ClassDef):
            modules.add(node.name)
    own = local_names(function) - {"self"}
    found = set()
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    inner = {name for part in body for node in ast.walk(part) if isinstance(node, _SCOPES) for name in _bound(node)}
    for part in body:
        for node in ast.walk(part):
            if not isinstance(node, ast.Name) or node.id in own | inner | modules or node.id in _BUILTINS:
                continue
            called = functions.get(node.id) if node.id not in variables else None
            if called is None:
                found.add(node.id)
            elif depth and called is not function:
                found |= outside(called, tree, depth - 1)
    return found


_SCOPES = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_BUILTINS = frozenset(dir(builtins))


def _bound(node: ast.AST) -> set[str]:
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        return local_names(node)
    return stored_names(node)


def stored_names(node: ast.AST) -> set[str]:
    """Names that something assigns, those in functions inside it too."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


_IMPURE = re.compile(
    r"\b(?:np|numpy)\.empty|\btime\.|\bdatetime\.|\bos\.(?:listdir|scandir|getpid|urandom)|\bid\(|\buuid\."
    r"|\bset\(|\bthreading\.|\bglob\."
)


def impure(function: Definition) -> Write | None:
    """The first call in a function that gives another value each time: a clock, memory that nobody filled, an order."""
    own = _variables(function)
    for node in own_nodes(function):
        if isinstance(node, ast.Call) and root(node.func) not in own:
            match = _IMPURE.search(f"{ast.unparse(node.func)}(")
            if match is not None and "(" not in ast.unparse(node.func):
                return Write(node.lineno, match.group().rstrip(".("), ast.unparse(node))
    return None


_CLOCK = re.compile(
    r"^(?:time\.(?:time|time_ns|monotonic|perf_counter)|(?:datetime\.)?datetime\.(?:now|utcnow|today))$"
)


def clock(function: Definition) -> Write | None:
    """The first reading of a clock in a function itself."""
    own = _variables(function)
    for node in own_nodes(function):
        if isinstance(node, ast.Call) and root(node.func) not in own and _CLOCK.match(ast.unparse(node.func)):
            return Write(node.lineno, ast.unparse(node.func), ast.unparse(node))
    return None


def durations(function: Definition) -> list[ast.BinOp]:
    """Differences of two readings of a clock in a function itself: `time.time() - start`."""
    own, kept = _variables(function), set()
    every = list(own_nodes(function))

    def reads(node: ast.AST) -> bool:
        called = isinstance(node, ast.Call) and root(node.func) not in own and _CLOCK.match(ast.unparse(node.func))
        return bool(called) or (isinstance(node, ast.Name) and node.id in kept)

    for one in every:
        if isinstance(one, ast.Assign) and reads(one.value):
            kept |= {target.id for target in one.targets if isinstance(target, ast.Name)}
    return [
        one for one in every
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub) and reads(one.left) and reads(one.right)
    ]  # fmt: skip


def unrepeatable(function: Definition, tree: ast.AST | None) -> str:
    """Why a body may give something else for the same inputs, its draws from the global generators apart.

    Returns:
      A clause about the body; empty where nothing says so.
    """
    drawn = [one.text for one in global_random(function, tree) if one.name not in SHARED] or _unseeded(function)
    if drawn:
        return f"draws random numbers ({drawn[0]})"
    read = clock(function)
    if read is not None:
        return f"reads a clock ({read.text})"
    writes = {one.name: one for one in state_writes(function)}
    changed = {
        id(part)
        for one in own_nodes(function)
        if isinstance(one, ast.Call) and _grown(one)
        for part in ast.walk(one.func)
    }
    names = [one.id for one in own_nodes(function) if isinstance(one, ast.Name) and id(one) not in changed]
    counted = {one.name for one in counters(function)}
    for name, write in writes.items():
        if name in counted or names.count(name):
            return f"reads and changes {name} ({write.text})"
    return ""


def _unseeded(function: Definition) -> list[str]:
    """What makes a generator without a seed, or draws from TensorFlow's."""
    calls = [
        one for one in own_nodes(function) if isinstance(one, ast.Call) and root(one.func) not in _variables(function)
    ]
    return [ast.unparse(one) for one in calls if _UNSEEDED.match(ast.unparse(one))]


def _grown(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _GROWS


def own_gradients(function: Definition, tree: ast.AST, depth: int = 3) -> list[Definition]:
    """Functions with a gradient of their own (`@tf.custom_gradient`) among a body and what it calls of its file."""
    found: dict[int, Definition] = {}
    functions = {one.name: one for one in all_nodes(tree) if isinstance(one, ast.FunctionDef)}
    todo: list[tuple[Definition, int]] = [(function, depth)]
    seen: set[int] = set()
    while todo:
        one, left = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        decorators = getattr(one, "decorator_list", [])
        if any(ast.unparse(decorator).endswith("custom_gradient") for decorator in decorators):
            found[id(one)] = one
        for part in ast.walk(one):
            if isinstance(part, ast.FunctionDef) and part is not one:
                todo.append((part, left))
            elif isinstance(part, ast.Name) and part.id in functions and left:
                todo.append((functions[part.id], left - 1))
    return list(found.values())


def is_random(function: Definition, tree: ast.AST, depth: int = 4) -> bool:
    """Whether a function draws random numbers in any way, or a function or an object of its file that it calls."""
    return _is_random(function, tree, depth, set())


_DRAWN = {
    "rand", "randn", "randint", "random", "random_sample", "normal", "standard_normal", "uniform", "integers", "choice",
    "permutation", "poisson", "binomial",
}  # fmt: skip
"""Methods of NumPy's generators that give numbers."""
_RANDOM = re.compile(r"rand|shuffle|rng|seed|sample|dropout|noise|permut|uniform|normal\b|choice|augment", re.I)


def _is_random(part: ast.AST, tree: ast.AST, depth: int, seen: set[int]) -> bool:
    if id(part) in seen:
        return False
    seen.add(id(part))
    every, own = all_nodes(tree), isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    used, local = _used_as_functions(part), local_names(part) if own else set()  # type: ignore[arg-type]  # it is one
    for node in ast.walk(part):
        if isinstance(node, ast.keyword) and node.arg == "p" and _is_share(node.value):
            return True  # albumentations and its like: `HorizontalFlip(p=0.5)`
        if not isinstance(node, (ast.Attribute, ast.Name)):
            continue
        name = node.attr if isinstance(node, ast.Attribute) else node.id
        if _RANDOM.search(name):
            return True
        if not depth:
            continue
        called: list[ast.AST] = [
            one for one in every if isinstance(one, (ast.FunctionDef, ast.ClassDef)) and one.name == name
        ]
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and name not in local:
            called += [
                one.value for one in every
                if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and not _is_drawn(one.value)
                and any(isinstance(target, ast.Name) and target.id == name for target in one.targets)
            ] if id(node) in used else []  # fmt: skip
        if any(_is_random(one, tree, depth - 1, seen) for one in called):
            return True
    return False


def _used_as_functions(part: ast.AST) -> set[int]:
    """Names that are called, or asked for a method, or handed on to a function: not arrays that are only read."""
    found: set[int] = set()
    for one in ast.walk(part):
        if isinstance(one, ast.Call):
            called: ast.expr = one.func
            while isinstance(called, ast.Attribute):
                called = called.value
            given = (called, *one.args, *(word.value for word in one.keywords))
            found.update(id(value) for value in given if isinstance(value, ast.Name))
    return found


def _is_drawn(value: ast.expr) -> bool:
    """Whether an expression is an array that was drawn once: `rng.rand(8, 3).astype("float32")`."""
    while isinstance(value, (ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _DRAWN:
            return True
        value = value.func if isinstance(value, ast.Call) else value.value
    return False


def _is_share(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, float) and 0 < value.value < 1


def computed_together(function: ast.AST | None, name: str, others: Collection[str]) -> bool:
    """Whether a function computes with a name and one of some others: `x * self.count`.

    Args:
      function: The function.
      name: As it is written.
      others: Further names.
    """
    for one in ast.walk(function) if function is not None else ():
        if isinstance(one, ast.BinOp):
            texts = {ast.unparse(part) for part in operands(one) if isinstance(part, (ast.Name, ast.Attribute))}
            if name in texts and not texts.isdisjoint(others):
                return True
    return False


def operands(node: ast.expr) -> Iterator[ast.AST]:
    """The operators and operands of a computation, without what stands in calls and indices."""
    if isinstance(node, ast.BinOp):
        yield node.op
        yield from operands(node.left)
        yield from operands(node.right)
    else:
        yield node
