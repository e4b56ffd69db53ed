"""What a graph keeps of its trace, and what is traced again: values, objects and functions between its calls."""
