"""The tables that say which function compiles which node of the syntax tree."""

from __future__ import annotations

from simgpu.cuda_c.compile import (
    assignments,
    braces,
    calls,
    closures,
    declarations,
    expressions,
    function_addresses,
    indirect_calls,
    loops,
    objects,
    places,
    statements,
)
from simgpu.cuda_c.compile.context import Rules

RULES = Rules(
    expressions={
        **expressions.EXPRESSIONS,
        **places.EXPRESSIONS,
        **braces.EXPRESSIONS,
        **assignments.EXPRESSIONS,
        **calls.EXPRESSIONS,
        **closures.EXPRESSIONS,
    },
    statements={**statements.STATEMENTS, **declarations.STATEMENTS, **loops.STATEMENTS},
    call=calls.call,
    overloaded=objects.overloaded,
    construct=objects.construct,
    by_address=indirect_calls.call_by_address,
    become=objects.become,
    address_as=function_addresses.address_as,
)
