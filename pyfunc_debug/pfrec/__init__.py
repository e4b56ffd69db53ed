"""The .pfrec file: its schema (`schema.sql`), the writer that fills it, and the reader, which needs no TensorFlow."""

from pyfunc_debug.pfrec.reader import Reader
from pyfunc_debug.pfrec.schema import SCHEMA_VERSION, schema_text
from pyfunc_debug.pfrec.writer import Writer

__all__ = ["SCHEMA_VERSION", "Reader", "Writer", "schema_text"]
