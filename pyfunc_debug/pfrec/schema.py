"""The schema's text and version."""

from __future__ import annotations

from importlib import resources

SCHEMA_VERSION = 2
APPLICATION_ID = 0x50465243
"""SQLite's application_id of a recording: the letters PFRC."""

NEW = "-new"
"""What follows the name of a recording until it has its tables."""


def schema_text() -> str:
    """The documented schema, as SQL."""
    return resources.files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
