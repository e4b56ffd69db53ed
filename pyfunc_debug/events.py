"""What interception reports, and to whom: the `Observer` protocol and the facts it is given.

Interception and the recorder do not know each other; both know this.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, NamedTuple, Protocol

from pyfunc_debug.records import Frame, FunctionKind, NodeKind, RunKind


@dataclass(frozen=True, slots=True)
class Body:
    """The user's function behind a node."""

    name: str
    file: str | None
    line: int | None
    parameters: tuple[str, ...]
    internal: bool
    """Whether the function is TensorFlow's or Keras' own."""
    elements: Literal["", "own", "another's", "threads", "processes"] = ""
    """Of a node that takes elements for a Dataset: whether this function yields them, whether it only makes what does,
    or whether threads or processes of Keras' own run it."""


class Statements(NamedTuple):
    """What the lines of code that AutoGraph generated stand for."""

    lines: dict[int, int]
    """By line that begins a statement of the user's: the user's line."""
    joined: dict[int, frozenset[int]]
    """By the same, the user's other lines that are in that one line."""
    part: bool
    """Whether the code is a lambda that the user did not write, for a part of an expression."""


NO_STATEMENTS = Statements({}, {}, True)


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """A traced Python function."""

    name: str
    kind: FunctionKind
    file: str | None
    line: int | None
    internal: bool


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node as it was made, or as it was found when it was called for the first time.

    `gradient_of` is the token of the forward node when this is the node of a gradient.
    """

    token: str
    kind: NodeKind
    body: Body
    name: str | None
    graph: str | None
    function: FunctionFacts | None
    stack: tuple[Frame, ...]
    tout: tuple[str, ...]
    paths: tuple[str, ...]
    out_paths: tuple[str, ...]
    internal: bool
    gradient_of: str | None
    site: tuple[str, int, str] | None
    """For an eager call: the user's line, which with the body identifies the node."""


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """A finished graph trace. `tokens` are the nodes in its graph, nested ones too; `parent` its enclosing trace.

    `failure` is the message and the user's frames of the exception that ended it, outermost first.

    `closest` is the closest earlier signature, `avoid` what would have made one graph do.

    `shapes` are what TensorFlow knows of the shapes of nodes in its graph, by token: ("input" or "output", position,
    dtype, shape), with None for an unknown rank.
    """

    id: int
    function: FunctionFacts
    object: int | None
    name: str | None
    signature: str
    reason: tuple[str, ...]
    start_ns: int
    duration_ns: int
    error: str | None
    parent: int | None
    tokens: frozenset[str]
    closest: str | None = None
    avoid: str | None = None
    failure: tuple[str, tuple[tuple[str, int, str], ...]] | None = None
    shapes: Mapping[str, tuple[tuple[str, int, str, tuple[int | None, ...] | None], ...]] = field(default_factory=dict)


class RunFacts:
    """A run: made when it begins, completed when it ends.

    `tokens` is None when the function's graph could not be read: then any call during the run may belong to it.
    `site` is the user's line that started it (file, line, function).
    """

    __slots__ = (
        "duration_ns", "error", "function", "id", "kind", "name", "site", "start_ns", "thread", "tokens", "trace",
    )  # fmt: skip

    def __init__(
        self, id: int, kind: RunKind, name: str, trace: int | None, function: FunctionFacts | None,
        tokens: frozenset[str] | None, thread: int, start_ns: int, site: tuple[str, int, str] | None = None,
    ) -> None:  # fmt: skip
        self.id = id
        self.kind = kind
        self.name = name
        self.trace = trace
        self.function = function
        self.tokens = tokens
        self.thread = thread
        self.start_ns = start_ns
        self.site = site
        self.duration_ns: int | None = None
        self.error: str | None = None


MANY_RUNS = 64
"""Of more runs in flight none is named: to list them for each call would cost the more, the more threads there are."""
TOO_MANY: list[RunFacts] = []
"""What `LiveRuns.now` gives then."""


class LiveRuns:
    """Runs in flight: who may be the parent of a call that starts now.

    Without a lock: each change gets a number of its own, and a list is good for as long as no other number is there.

    Attributes:
      version: Number of the newest change: what `now` gave is good until it is another.
    """

    __slots__ = ("_begun", "_made", "_numbers", "_runs", "version")

    def __init__(self) -> None:
        self._runs: dict[int, RunFacts] = {}
        self._numbers = itertools.count(1)
        self._begun = 0
        self.version = 0
        self._made: tuple[int, list[RunFacts]] = (0, [])

    def begin(self, run: RunFacts) -> None:
        """Before it starts."""
        self._runs[run.id] = run
        self._begun = run.id
        self.version = next(self._numbers)

    def end(self, run: RunFacts) -> None:
        """After it ended."""
        self._runs.pop(run.id, None)
        self.version = next(self._numbers)

    def first(self) -> int:
        """The `id` of the oldest run in flight, or of the next one: those before are of no interest from now on."""
        return min((*list(self._runs), self._begun + 1))

    def now(self) -> list[RunFacts]:
        """The runs in flight, or `TOO_MANY`; calls share the list, nobody changes it."""
        if len(self._runs) > MANY_RUNS:
            return TOO_MANY
        version, made = self.version, self._made
        if made[0] != version:
            # A list: making a tuple may run the garbage collector, and with it other threads, between two items.
            self._made = made = (version, list(self._runs.values()))
        return made[1]


TFLITE = "TensorFlow Lite"
"""Where a node that was saved goes, if a converter saved it."""
FROZEN = "a frozen graph"
"""Where it goes, if the variables of its graph of TensorFlow 1 became constants, to be written to a file."""


SESSION_RUN = "Session.run"
"""The function of a loss that is not finite, if a session of TensorFlow 1 gave it."""


class Notice(str, Enum):
    """What is noticed while recording, for the doctor and whoever shows a call: the names in the table `notice`."""

    NONE_GRADIENT = "none-gradient"
    VARIABLE_NO_INPUT = "variable-no-input"
    WRONG_TAPE = "wrong-tape"
    SECOND_ORDER = "second-order"
    CUT_GRADIENT = "cut-gradient"
    ALL_NONE = "all-none"
    ASKED_TAPE = "asked-tape"
    SOME_NONE = "some-none"
    FIXED_ASKED = "fixed-asked"
    FLAT_OP = "flat-op"
    NOT_FINITE = "not-finite"
    BROADCAST = "broadcast"
    PICKED = "picked"
    UNREAD_WRITE = "unread-write"
    RESHAPED = "reshaped"
    LISTED_RESULT = "listed-result"
    TEXT_TABLES = "text-tables"
    MAPPED_GRADIENT = "mapped-gradient"
    GRADIENT_CHECK = "gradient-check"
    GRAPH_CODE = "graph-code"
    BATCH_MEAN = "batch-mean"
    KEPT = "kept"
    LEAKED_TAPES = "leaked-tapes"
    FAILURE = "failure"
    FAILED_LINE = "failed-line"
    TRACE_FAILED = "trace-failed"
    UNKNOWN_ELEMENTS = "unknown-elements"
    SERIALIZATION = "serialization"
    MEMORY = "memory"
    SAVED = "saved"
    DISTRIBUTED = "distributed"
    REPLICA = "replica"
    COLLECTIVE = "collective"
    REMOTE = "remote"
    COMPILED = "compiled"
    CROSSING = "crossing"
    NOT_EAGER = "not-eager"
    STALE_CLOSURE = "stale-closure"
    PRINTED_SYMBOL = "printed-symbol"
    DATA_ENDED = "data-ended"
    REUSED_BATCH = "reused-batch"
    SORTED_SPLIT = "sorted-split"
    CUT_ELEMENT = "cut-element"
    PREDICTED_COLUMN = "predicted-column"
    COMPILED_LOSS = "compiled-loss"
    TARGET_RANGE = "target-range"
    COUNTED_STEPS = "counted-steps"
    GROWN_GRAPH = "grown-graph"
    SESSION_RUNS = "session-runs"
    LABEL_WEIGHTS = "label-weights"
    MISSED_WEIGHTS = "missed-weights"
    LAMBDA_SHAPE = "lambda-shape"
    LAYER_CALL = "layer-call"
    EMPTY_FIT = "empty-fit"
    KERAS_WORKERS = "keras-workers"
    HANG = "hang"
    FORKED = "forked"
    HANG_TROUBLE = "hang-trouble"
    SEEN_LINES = "seen-lines"
    HELD = "held"
    STOP = "stop"
    STOP_UNANSWERED = "stop-unanswered"
    CHANGED_BY_HAND = "changed-by-hand"
    LOGGED = "logged"

    __str__ = str.__str__

    @classmethod
    def read(cls, text: str) -> str:
        """The name of a notice in a recording, which may be an older one with another spelling."""
        return _OLDER_SPELLINGS.get(text, text)


_OLDER_SPELLINGS: dict[str, str] = {
    "gradient-none": Notice.NONE_GRADIENT.value,
    "stop_unanswered": Notice.STOP_UNANSWERED.value,
    "changed_by_hand": Notice.CHANGED_BY_HAND.value,
}


@dataclass(frozen=True, slots=True)
class NotConverted:
    """What a body had returned when TensorFlow could not convert it: `pyfunc_returned` of the exception.

    Attributes:
      kind: Name of its type.
      shape, dtype, ragged_rank: Of a RaggedTensor or SparseTensor; None for others.
      position: Of that one, where a list or tuple was returned.
      parts: Of a dict its keys, sorted, each with the dtype of its value, or "float" of Python's; empty where one is
        not known.
    """

    kind: str
    shape: tuple[int | None, ...] | None = None
    dtype: str | None = None
    ragged_rank: int | None = None
    position: int = 0
    parts: tuple[tuple[str, str], ...] = ()


class Taken(NamedTuple):
    """An element that Keras took itself, as it is, in place of a call's outputs."""

    value: Any


class Observer(Protocol):
    """Who listens to interception. No method may raise; `enter` and `leave` are the hot path."""

    def enter(self, token: str, args: Any) -> Any:
        """A call is about to start; the result is handed to `leave` or `fail`."""

    def leave(self, ticket: Any, outputs: Any) -> Any:
        """The body returned; the result goes to TensorFlow in place of `outputs` (normally the same object)."""

    def fail(self, ticket: Any, error: BaseException) -> None:
        """The body raised."""

    def keras_takes(self, node: NodeFacts) -> None:
        """Keras is about to take elements itself, of what is described as a node would be: no recording has it."""

    def taking(self) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., None]]:
        """`enter`, `leave` and `fail` for elements that Keras takes itself: `leave` gets and gives a `Taken`."""

    def returned(self, ticket: Any, value: Any, declared: Any) -> Any:
        """The body returned, and TensorFlow has not converted its value yet. Hot path. Not for every call.

        Args:
          ticket: What `enter` gave.
          value: The body's own.
          declared: The dtypes of `Tout`; None where the kernel compares them afterwards.

        Returns:
          What to hand to `converted`; None for nothing.
        """

    def converted(self, returned: Any, outputs: Any) -> None:
        """TensorFlow has converted what `returned` looked at into these outputs."""

    def rejected(self, ticket: Any, error: BaseException) -> None:
        """What the body of an eager numpy_function returned cannot be made a tensor. `leave` was called before."""

    def node_made(self, node: NodeFacts) -> None:
        """A node was made, or an eager call is about to happen."""

    def node_gone(self, token: str) -> None:
        """An eager call is over and can have no gradient call: nobody will ask about this node any more."""

    def trace_began(self, trace: int, function: FunctionFacts) -> None:
        """TensorFlow begins to trace a function: the graph trace that will have this number."""

    def trace_ended(self, trace: TraceFacts) -> None:
        """TensorFlow finished a graph trace."""

    def run_began(self, run: RunFacts) -> None:
        """Python started a tf.function."""

    def run_ended(self, run: RunFacts) -> None:
        """The tf.function returned or raised; `duration_ns` and `error` are set."""

    def paired(self, ticket: Any, own: Any, used: Any, dy: tuple[int, ...], dx: tuple[int, ...]) -> None:
        """A gradient call found its forward call.

        Args:
          ticket: The gradient call's.
          own: The ticket of the forward call that it belongs to; None if that was not recorded.
          used: The ticket of the forward call whose tape is used: in stock mode not always its own.
          dy: Which outputs of the forward node the gradients coming in belong to.
          dx: Which inputs of the forward node the gradients going out belong to.
        """

    def gradient_notice(self, rule: Notice, token: str, ticket: Any, **facts: Any) -> None:
        """Something about the gradients of a node (by its forward token), for the doctor."""

    def notice(self, rule: Notice, token: str | None, call: int | None, **facts: Any) -> None:
        """Something else for the doctor, about the node with this token."""

    def trouble(self, where: str, error: BaseException) -> None:
        """Something of ours failed; the program went on."""
