"""How often each of the user's lines ran, at trace, in bodies and in the graph, and what it printed."""
