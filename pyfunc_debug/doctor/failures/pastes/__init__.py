"""What is said and pasted: the text, the edit, and the ways to put lines into Python or leave them in the graph."""
