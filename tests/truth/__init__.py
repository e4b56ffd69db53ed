"""Generated programs whose truth is known, and what we say of them."""
