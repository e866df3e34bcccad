"""From words to a syntax tree, in which types are still names."""
