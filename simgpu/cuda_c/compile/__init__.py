"""Compile the syntax tree to closures that compute values.

For each node of the tree there is a function that takes the `Context` and the node. That of an expression
gives an `Expr`, that of a statement a closure. They are found by the node's class, in the tables at the ends
of their modules: `expressions`, `places`, `assignments`, `braces`, `calls`; `declarations`, `statements`,
`loops`. What costs depend on is written down on the way (`record`).

To add a construct of C: a node in `syntax.ast`, what reads it in `syntax`, and here a function with its line
in the table of its module. To add a built-in function: a line in a table of `builtins`.
"""
