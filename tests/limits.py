"""The one limit of all tests: nothing that works takes so long, on however busy a machine; what hangs ends then."""

HANG_S = 600.0
