"""From words to a syntax tree, in which types are still names.

One parser in four files, each a class that builds on the one before it:

    tokens_and_types    looking at tokens and taking them; names of types
    expressions         operators and their precedence
    statements          statements and local declarations
    parser              the top level: functions, structs, constants, templates

`ast` has the nodes that they make.
"""
