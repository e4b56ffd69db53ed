"""What people call: one module a verb (record, recording, breakpoints, compare, explain, ...)."""
