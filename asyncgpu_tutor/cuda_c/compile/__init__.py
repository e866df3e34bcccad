"""From the syntax tree to closures that compute values."""
