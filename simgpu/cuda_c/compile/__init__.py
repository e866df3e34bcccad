"""Compile the syntax tree to closures that compute values, by way of a typed form.

*Lowering* writes the form (`form`). For each node of the tree there is a function that takes the `Context`
and the node. That of an expression gives an `Expr`, that of a statement writes steps. They are found by the
node's class, in the table of `rules`. *Passes* read it: see there. `control` turns it into closures, and
`printed` into text.

To add a construct of C: a node in `syntax.ast`, the parser's function that reads it, and here a function
with its line in the table of `rules`. To add a built-in function: a line in a table of `builtins`.
"""
