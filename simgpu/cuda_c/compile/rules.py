"""The table that says which function compiles which node of the syntax tree."""

from simgpu.cuda_c.compile import (
    assignments,
    braces,
    calls,
    declarations,
    expressions,
    function_addresses,
    indirect_calls,
    objects,
    places,
    statements,
)
from simgpu.cuda_c.compile.context import Rules
from simgpu.cuda_c.syntax import ast

RULES = Rules(
    expressions={
        ast.Literal: expressions.number_literal,
        ast.Text: expressions.string,
        ast.SizeOf: expressions.sizeof_expression,
        ast.Comma: expressions.comma,
        ast.Cast: expressions.cast,
        ast.Unary: expressions.unary,
        ast.Binary: expressions.binary,
        ast.Conditional: expressions.conditional,
        ast.Qualified: expressions.qualified,
        ast.DeclRefExpr: places.content,
        ast.Member: places.content,
        ast.Index: places.content,
        ast.Braces: braces.braced,
        ast.AssignExpr: assignments.assign,
        ast.Increment: assignments.increment,
        ast.CallExpr: calls.called_function,
        ast.Lambda: objects.closure,
    },
    statements={
        ast.Block: statements.block,
        ast.ExpressionStatement: statements.effect,
        ast.If: statements.branch,
        ast.Switch: statements.switch,
        ast.Jump: statements.jump_statement,
        ast.Return: statements.leave,
        ast.Declaration: declarations.variables,
        ast.StructDef: declarations.struct,
        ast.For: statements.loop,
        ast.RangeFor: statements.range_for,
    },
    call=calls.call_expression,
    overloaded=objects.overloaded,
    construct=objects.construct,
    by_address=indirect_calls.call_by_address,
    become=objects.become,
    address_as=function_addresses.address_as,
)
