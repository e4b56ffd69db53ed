"""Gradients of py_functions: which tape a call has, and which one its gradient call uses."""
