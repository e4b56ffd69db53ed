"""The command line's parser, which knows its commands and their options by name: defaults and completion need them."""

from __future__ import annotations

import argparse
from typing import Any


class Parser(argparse.ArgumentParser):
    """A parser that can be asked for what was added to it.

    Attributes:
      commands: Parsers of its commands, by name.
      options: What was added, by name: long options without the two dashes, arguments as they are called.
      repeated: Names of those that may be given several times.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.commands: dict[str, Parser] = {}
        self.options: dict[str, argparse.Action] = {}
        self.repeated: set[str] = set()
        super().__init__(*args, **kwargs)

    def add_argument(self, *names: Any, **kwargs: Any) -> argparse.Action:
        """Adds one, and remembers it."""
        action = super().add_argument(*names, **kwargs)
        name = next((one[2:] for one in action.option_strings if one.startswith("--")), action.dest)
        self.options[name] = action
        if kwargs.get("action") == "append":
            self.repeated.add(name)
        return action
