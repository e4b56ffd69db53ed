"""Why something did not come into a recording."""

from __future__ import annotations

from enum import Enum


class Loss(str, Enum):
    """A reason, as `meta["dropped"]["reasons"]` names it."""

    BUDGET = "budget"
    QUEUE = "queue"
    LARGE = "too large"
    UNREAD = "not read"
    DISK = "disk full"
    LIMIT = "file size limit"
    IO = "disk failed"
    LOCKED = "locked"
    BATCH = "batch failed"
    DELETED = "file deleted"
    END = "at the end"
    SAMPLED = "sampled"

    def said(self, budget: object) -> str:
        """The reason in words.

        Args:
          budget: The recording's, in bytes.
        """
        return _WORDS[self].format(budget=budget)


_WORDS = {
    Loss.BUDGET: "the budget of {budget} bytes was used up",
    Loss.QUEUE: "the queue to the writer was full",
    Loss.LARGE: "a value alone was more than may wait to be written: a quarter of the budget of {budget} bytes, at "
    "most 128 MB",
    Loss.UNREAD: "they could not be read",
    Loss.DISK: "the disk was full",
    Loss.LIMIT: "a limit on the size of files was reached (ulimit -f)",
    Loss.IO: "the disk did not take them",
    Loss.LOCKED: "another process had locked the file",
    Loss.BATCH: "SQLite refused them",
    Loss.DELETED: "the file was deleted while it was written",
    Loss.SAMPLED: "sampling left them out",
    Loss.END: "they were about to begin or to end when the recording ended",
}
