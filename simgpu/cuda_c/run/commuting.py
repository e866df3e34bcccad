"""Arrays that a kernel only adds to: several may do so at once, and the same comes out in any order."""

from __future__ import annotations

from simgpu.cuda_c.syntax import ast

# Atomics that commute with themselves, on whole numbers: the rounding of sums of floats depends on order.
_COMMUTE = {f"atomic{name}" for name in ("Add", "Sub", "Min", "Max", "And", "Or", "Xor")}


def added_to(kernel: ast.Function) -> dict[str, str]:
    """For each parameter that is only changed by statements such as `atomicAdd(&a[i], 1)`, that atomic."""
    mentions: dict[str, int] = {}
    added: dict[str, list[str]] = {}
    for node in ast.parts_of([kernel.params, kernel.body]):
        if isinstance(node, ast.Declarator | ast.Param) and node.name in _COMMUTE:
            return {}  # what is called by this name is something of the kernel's own
        if isinstance(node, ast.Name):
            mentions[node.name] = mentions.get(node.name, 0) + 1
        elif isinstance(node, ast.ExpressionStatement) and isinstance(node.expression, ast.Call):
            call = node.expression
            free = call.object is None and call.owner is None and not call.namespace
            if call.name in _COMMUTE and free and call.arguments:
                added.setdefault(_array(call.arguments[0]), []).append(call.name)
    return {
        param.name: added[param.name][0]
        for param in kernel.params
        if param.name in added
        and len(added[param.name]) == mentions[param.name]
        and len(set(added[param.name])) == 1
    }


def _array(place: ast.Expression) -> str:
    """The array that an address is in: of ``&array[i]``, of ``array + i`` and of ``array``; else none."""
    if isinstance(place, ast.Unary) and place.op == "&" and isinstance(place.operand, ast.Index):
        place = place.operand.base
    elif isinstance(place, ast.Binary) and place.op == "+":
        place = place.left
    return place.name if isinstance(place, ast.Name) else ""
