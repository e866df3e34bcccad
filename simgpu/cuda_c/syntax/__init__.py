"""Parse words to a syntax tree, in which types are still names, and report errors of syntax.

One parser in five files, each a class that builds on the one before it:

    tokens_and_types    looking at tokens and taking them (`need` says what is missing); names of types
    expressions         operators and their precedence; parameters, and brackets around a declared name
    statements          statements and local declarations
    structs             functions; structs with their members and functions, enumerations
    parser              the top level: namespaces, constants, templates

`ast` has the nodes that they make.
"""
