"""`check()`: what becomes of an object's nodes when it is saved, compiled or distributed, before that happens."""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from typing import Any

from pyfunc_debug.doctor.graphs import leaving
from pyfunc_debug.doctor.silenced import Silenced
from pyfunc_debug.doctor.text import findings_text
from pyfunc_debug.interception.graphs.held import held
from pyfunc_debug.interception.names import private
from pyfunc_debug.records import Finding


class Checked(list[Finding]):
    """Findings, worst first. Prints as text, also in a notebook."""

    def __init__(self, findings: Iterable[Finding], checked: str) -> None:
        super().__init__(findings)
        self._checked = checked

    def __str__(self) -> str:
        return findings_text(self, 100) or f"No node in {self._checked} runs Python."

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


class _Sources:
    """The user's files as they are now."""

    def source(self, file: str | None) -> list[str]:
        """Lines of a file; empty if it cannot be read."""
        return [] if file is None else [line.rstrip("\n") for line in linecache.getlines(file)]

    def site(self, node: int | None) -> None:
        """Findings without a recording name no node by number."""


def check(thing: Any, strategy: Any = None) -> Checked:
    """Says of each py_function in an object what it will break: saving, XLA, other processes. Runs nothing.

    A comment `# pyfunc: ignore[serialization]` on the user's line silences a finding there.

    Args:
      thing: A tf.function that was traced, a ConcreteFunction, a Dataset, a Keras model, a tf.Module, a tf.Graph, or
        the folder of a SavedModel. A Keras model that was not trained yet is traced once, as its export would do.
      strategy: The tf.distribute.Strategy that will run it; by default a Keras model's own, or the one whose scope this
        is.

    Returns:
      Findings of the rules serialization, xla, distribution and eager-switch, each with the line and a fix;
      empty if no node of it runs Python.

    Raises:
      BadOptionError: it is none of these, or it has no graph yet; the message says what to pass.

    Example:
      print(pfd.check(model))  # before model.export("model")
    """
    found = held(thing)
    silenced = Silenced(_Sources())
    around = _surroundings(thing, strategy)
    return Checked([one for one in leaving.findings(found, around) if not silenced(one)], found.name)


def _surroundings(thing: Any, strategy: Any) -> leaving.Surroundings:
    import tensorflow as tf

    own = strategy if strategy is not None else getattr(thing, "distribute_strategy", None)
    if own is None and tf.distribute.has_strategy():
        own = tf.distribute.get_strategy()
    eager = tf.config.functions_run_eagerly() and not private.data_debug_mode()
    if own is None:
        return leaving.Surroundings(eager_in_vain=eager)
    name = type(own).__name__.removesuffix("V1").removesuffix("V2")
    return leaving.Surroundings(name, int(own.num_replicas_in_sync), eager)
