"""The demo: a small real pipeline to record, and the handwritten digits that it learns from."""
