"""Compiling a kernel: lowered to its form, then by passes to closures."""

from dataclasses import dataclass

from simgpu.cuda_c.compile.context import Context, Frame
from simgpu.cuda_c.compile.control import Control
from simgpu.cuda_c.compile.declarations import shared_variable
from simgpu.cuda_c.compile.form import BasicBlock, Declare, Execute, Form, Meet, instructions_below
from simgpu.cuda_c.compile.rooms import parameter_entry
from simgpu.cuda_c.compile.statements import sequence
from simgpu.cuda_c.compile.storage import has_pointer, read_variable
from simgpu.cuda_c.compile.summing import summing
from simgpu.cuda_c.compile.type_names import param_type, resolve_type
from simgpu.cuda_c.compile.typed import Evaluate, Scope
from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.compile.waiting import may_wait, parks, parts_in_warps, waits_apart
from simgpu.cuda_c.lockstep import Site
from simgpu.cuda_c.syntax.ast import Declarator, FunctionDecl, Param
from simgpu.cuda_c.syntax.names import addressed_names
from simgpu.cuda_c.types import Pointer, Struct, size_of

_MOST_PARAMETERS = 32_764  # bytes; CUDA C++ Programming Guide, "Function Parameters"


@dataclass(frozen=True)
class Code:
    """A kernel as closures, with what they need to run."""

    parameters: list[Variable]  # what the arguments of a launch are bound to, in order
    # Each batch of blocks begins with these: variables of the file, parameters that have an address.
    entry: list[Evaluate]
    body: Execute  # the kernel itself
    # `slots` and `exits`: how many variables and ways out a batch keeps track of.
    slots: int
    exits: int
    local_bytes: int  # of local memory that a thread takes
    sites: list[Site]  # the loads and stores that are counted
    shared_bytes: int  # static shared memory of a block
    watches: bool  # whether it has a loop that may spin, or a fence
    # It stores, loads or computes addresses, so that it may reach more than its arguments.
    follows: bool
    # Its blocks meet at a barrier of the grid, so that all of them must fit on the device.
    cooperative: bool
    asks_who: bool  # whether it has `__activemask()`

    @property
    def talks(self) -> bool:
        """Tell whether its threads may tell each other something, or by their company learn something."""
        told = any(site.volatile or site.scope for site in self.sites)
        return self.cooperative or self.asks_who or told


def lower(
    c: Context, function: FunctionDecl, scope: Scope, shared: list[tuple[Declarator, set[str]]]
) -> Form:
    """Write the form of a kernel, whose template `scope` knows; `shared` are variables of the file."""
    entry = [
        shared_variable(c, item, resolve_type(c, item.type), storage, item.type.itself("volatile"))
        for item, storage in shared
    ]
    c.scope = Scope(scope)
    c.frame = Frame(function, addressed=addressed_names(function.body, c.file.referred))
    size = sum(size_of(param_type(c, param)) for param in function.params)
    if size > _MOST_PARAMETERS:
        c.fail(function.at, f"the parameters take {size:,} bytes, {_MOST_PARAMETERS:,} are allowed")
    parameters = [_parameter(c, param, entry) for param in function.params]
    if function.body is None:
        text = f"the kernel '{function.name}' is declared, and has no body in this file"
        c.fail(function.at, text)
    with c.scoped() as names:
        sequence(c, function.body.body)
        # Those of the whole body alone: within a part of it, others may lead there later.
        for local in (it for it in names.names.values() if isinstance(it, Variable)):
            if isinstance(local.type, Pointer) and local.type.restrict:
                local.origin.note("restrict")
    read = [v.origin.root() for v in parameters if isinstance(v.type, Pointer) and v.type.const]
    for origin, at in c.aims.recast:
        if origin.has("written") and origin.root() in read:
            cure = "take it out of the parameter's type"
            c.unsupported(at, f"casting 'const' away from what is written to: {cure}")
    for site, origin in c.aims.watched:
        site.relaxed = origin.has("compared")
    return Form(function.name, parameters, entry, c.steps, c.numbers.points, c.numbers.sites)


def needs_cuts(form: Form) -> bool:
    """Tell whether threads wait in a call within a larger expression, which has to be cut out (`cuts`)."""
    pieces = (step for step in instructions_below(form.steps) if isinstance(step, BasicBlock))
    return may_wait(form.steps) and (any(map(waits_apart, pieces)) or parts_in_warps(form.steps))


def finish(c: Context, form: Form) -> Code:
    """Run the passes over a form, and make closures of it."""
    places = parks(form.steps, form.sites, c.file.source)
    body = Control(places, summing(form.steps)).closure(form.steps)
    meets = any(isinstance(s, Meet) and s.by == "grid" for s in instructions_below(form.steps))
    shared_bytes = max(c.shared.values(), default=0)
    return Code(
        form.parameters, form.entry, body, c.numbers.slots, c.numbers.exits, c.numbers.local_bytes,
        form.sites, shared_bytes,
        places.watches or meets or c.aims.fences, c.aims.follows, meets, c.aims.asks_who,
    )  # fmt: skip


def _parameter(c: Context, param: Param, entry: list[Evaluate]) -> Variable:
    if param.type.reference:
        c.unsupported(param.at, "references as kernel parameters: take a pointer")
    ctype, const = param_type(c, param), param.type.itself("const") and not param.dims
    given = Variable(param.name, ctype, c.new_slot(), const=const, parameter=True)
    given.rank = c.numbers.ranks.parameter()
    if isinstance(ctype, Pointer):
        given.origin.note("far")
    c.aims.follows |= isinstance(ctype, Struct) and has_pointer(ctype)
    variable = given
    if c.lives_in_memory(ctype) or param.name in c.frame.addressed:
        variable = Variable(param.name, ctype, c.new_slot(), memory=True, thread=True)
        variable.origin.note("near")
        entry.append(parameter_entry(c, variable, read_variable(c, given, param.at)))
    if param.name:
        c.scope.names[param.name] = variable
        c.steps.append(Declare(variable, parameter=True))
    return given
