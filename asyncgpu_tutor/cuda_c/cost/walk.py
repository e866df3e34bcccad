"""The second walk: what a kernel costs, read from the record of what it computes.

The walk goes through the record (`compile.record`) once, in the order of the source, as an optimising
compiler would look at it. It charges each step to the piece of code that it is in, and keeps, for each value,
what decides on later charges:

- how many loops deep it *changes*: what changes in no turn of the innermost loop is computed in front of it,
  and is free inside; an index made of constants and of counters of unrolled loops is part of an instruction;
- a *key*, the same for expressions of the same value: a place that has been loaded is *at hand*, and is not
  loaded again, until something is stored or assigned, or warps part or meet;
- its *rounds*, the longest chain of global loads that it waits for, and the variables that it *reads*: a load
  whose address comes out of another load, directly or by way of a variable, has to wait for it.

Whether a variable holds what was loaded is known only when all its assignments have been seen, so this
last question is answered at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from asyncgpu_tutor.cuda_c.compile.record import (
    Access,
    Address,
    Assign,
    Bind,
    Branch,
    Cell,
    Choice,
    Constant,
    Convert,
    Coordinate,
    Declare,
    Element,
    Exchange,
    Fence,
    Followed,
    Function,
    Load,
    Loop,
    Node,
    Operation,
    Piece,
    Price,
    Read,
    Record,
    Scoped,
    Selection,
    ShortCircuit,
    Step,
    Store,
    Work,
)
from asyncgpu_tutor.cuda_c.compile.variables import Origin, Variable
from asyncgpu_tutor.cuda_c.cost.charges import Charge, Costs, SiteCost
from asyncgpu_tutor.cuda_c.cost.loops import PARTLY, is_plain, partly_unrolled, unrolled_turns
from asyncgpu_tutor.cuda_c.cost.prices import price_of
from asyncgpu_tutor.cuda_c.cost.waiting import Waiting
from asyncgpu_tutor.cuda_c.syntax.ast import Assign as AssignNode
from asyncgpu_tutor.cuda_c.syntax.ast import Binary, Declaration, Expression
from asyncgpu_tutor.cuda_c.types import DOUBLE, Scalar, size_of

__all__ = ["walk"]

_IN_REGISTERS = 128  # bytes; larger arrays of a thread are in local memory
_TEMPORARIES = 8  # registers that a kernel needs besides its variables
_MOST_REGISTERS = 255  # of a thread: CUDA C++ Programming Guide, technical specifications
_ANYWHERE = 1 << 30  # the depth of what may change at any time, such as a load
_KNOWN = -1  # the depth of what a compiler knows


def walk(record: Record) -> Costs:
    """What the pieces and accesses of a kernel are charged."""
    walker = _Walk(record)
    walker.steps(record.steps)
    return walker.finish()


@dataclass(slots=True)
class _Facts:
    """What the walk knows of a value; `register`: it is the address of what a compiler keeps there."""

    reads: frozenset[Variable] = frozenset()
    rounds: int = 0
    depth: int = _ANYWHERE
    key: Any = None
    register: bool = False


@dataclass
class _Surroundings:
    """The loops around a step: all of them, those that are not unrolled, and turns done at once."""

    nesting: int = 0
    depth: int = 0
    overlap: int = 1


class _Walk:
    def __init__(self, record: Record) -> None:
        self.charges = [Charge() for _ in range(record.points)]
        self.sites = [SiteCost() for _ in range(record.sites)]
        self.charge = Charge()  # what stands in no piece is charged to nobody
        self.facts: dict[Node, _Facts] = {}
        self.around = _Surroundings()
        self.depths: dict[Variable, int] = {}
        self.first: dict[Variable, Node] = {}  # the values that variables begin with
        self.at_hand: set[Any] = set()
        self.control: list[frozenset[Variable]] = []  # what the branches around depend on
        self.waiting = Waiting()
        self.words = 0  # registers that the variables take which are in scope
        self.most_words = 0
        self.rules: dict[type[Step], Callable[[Any], None]] = {
            Work: self._work,
            Store: self._store,
            Assign: self._assign,
            Bind: self._bind,
            Declare: self._declare,
            Access: self._access,
            Fence: self._fence,
            Piece: self._piece,
            Scoped: self._scoped,
            Branch: self._branch,
            ShortCircuit: self._short_circuit,
            Choice: self._choice,
            Selection: self._selection,
            Loop: self._loop,
        }
        self.values: dict[type[Node], Callable[[Any], _Facts]] = {
            Node: self._made,
            Read: self._read,
            Coordinate: self._coordinate,
            Address: self._address,
            Element: self._element,
            Followed: self._followed,
            Cell: self._cell,
            Load: self._load,
            Exchange: self._exchange,
            Operation: self._operation,
            Convert: self._convert,
            Function: self._function,
        }

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, Node):
                self.facts[step] = self.values[type(step)](step)
            else:
                self.rules[type(step)](step)

    def finish(self) -> Costs:
        self.waiting.finish()
        for site in self.sites:
            if site.charge is not None and not site.charge.carried:
                site.overlap = site.charge.overlap
        registers = min(_TEMPORARIES + self.most_words, _MOST_REGISTERS)
        return Costs(self.charges, self.sites, registers)

    # -- charging

    def pay(self, price: Price, parts: Sequence[Node] | None = None, double: bool = False) -> None:
        """Charge an operation; no instruction where its `parts` do not change in the innermost loop."""
        instructions = price.instructions
        if parts is not None and not self.repeated(parts):
            instructions = 0
        self.charge.instructions += instructions
        self.charge.flops += price.flops
        self.charge.special += price.special
        if double:
            self.charge.doubles += instructions

    def repeated(self, parts: Sequence[Node]) -> bool:
        """Whether an operation has to be done in every turn of the innermost loop."""
        return self.changes(parts) >= self.around.depth

    def changes(self, parts: Sequence[Node]) -> int:
        """How many loops deep the first of these values changes that does."""
        return max((self.of(part).depth for part in parts), default=_ANYWHERE)

    # -- values

    def of(self, node: Node) -> _Facts:
        """What is known of a value."""
        if isinstance(node, Constant):
            return _Facts(depth=_KNOWN, key=("constant", node.value))
        return self.facts.get(node) or _Facts()

    def _made(self, node: Node) -> _Facts:
        """Facts of a value that is made of its parts in some way."""
        out = _Facts(depth=self.changes(node.parts))
        for part in node.parts:
            facts = self.of(part)
            out.reads |= facts.reads
            out.rounds = max(out.rounds, facts.rounds)
            out.register = facts.register
        return out

    def _read(self, node: Read) -> _Facts:
        variable = node.variable
        key = ("variable", id(variable)) if node.whole else None
        return _Facts(frozenset((variable,)), depth=self.depths.get(variable, 0), key=key)

    def _coordinate(self, node: Coordinate) -> _Facts:
        if node.name == "warpSize":
            return _Facts(depth=_KNOWN)
        return _Facts(depth=0, key=(node.name, node.axis))

    def _address(self, node: Address) -> _Facts:
        variable = node.variable
        key = None if variable.volatile else ("memory", id(variable))
        reads = frozenset((variable,))
        return _Facts(reads, depth=_KNOWN, key=key, register=variable.thread)

    def _element(self, node: Element) -> _Facts:
        base, index = (self.of(part) for part in node.parts)
        # Added to a known distance, an address needs no instruction: loads and stores take an offset.
        if index.depth > _KNOWN:
            self.pay(Price(), node.parts)
        out = self._made(node)
        if not node.volatile and base.key is not None and index.key is not None:
            out.key = ("element", base.key, index.key)
        # An array of one thread is in registers where a compiler knows the indices.
        out.register = node.array and base.register and index.depth == _KNOWN
        return out

    def _followed(self, node: Followed) -> _Facts:
        out = self._made(node)
        out.depth = _ANYWHERE
        out.rounds = 0 if node.known else out.rounds
        out.register = node.known and out.register
        return out

    def _cell(self, node: Cell) -> _Facts:
        at = self.of(node.parts[0])
        return _Facts(at.reads, at.rounds, _ANYWHERE, at.key, at.register)

    def _load(self, node: Load) -> _Facts:
        at = self.of(node.parts[0])
        rounds = at.rounds + self._wait(at, node.origin, node.site)
        return _Facts(at.reads, rounds, at.depth, at.key, at.register)

    def _wait(self, at: _Facts, origin: Origin | None, site: int | None) -> int:
        """Charge a load; 1 if it is a round of its own, which a load from nearby memory is not."""
        if at.register:
            return 0
        if at.key is not None:
            if at.key in self.at_hand and site is not None:
                self.sites[site].free = True
                return 0
            self.at_hand.add(at.key)
        self.pay(Price())
        if origin is not None and origin.near:
            return 0
        reads = at.reads.union(*self.control) if self.control else at.reads
        self.waiting.load(self.charge, reads, at.rounds + 1)
        return 1

    def _exchange(self, node: Exchange) -> _Facts:
        out = self._made(node)
        out.rounds = 0 if node.load is None else self.of(node.load).rounds
        return out

    def _operation(self, node: Operation) -> _Facts:
        kind, parts = node.type, node.parts
        whole = isinstance(kind, Scalar) and kind.is_integer
        out = self._made(node)
        if not isinstance(kind, Scalar):  # an address: see `_element`
            if self.of(parts[1]).depth > _KNOWN:
                self.pay(Price(), parts)
            return out
        if node.op == "fused":
            self.pay(price_of(node))
        elif not (whole and node.op == "+" and any(self._is_product(p) for p in parts)):
            self.pay(price_of(node), parts, kind is DOUBLE and node.op != "negate")
        if whole and node.op in _KEYED:
            x, y = (self.of(part).key for part in parts)
            if x is not None and y is not None:
                out.key = (node.op, x, y)
        return out

    def _is_product(self, node: Node) -> bool:
        """Whether an addition costs nothing more than this product: the hardware has both in one."""
        return isinstance(node, Operation) and node.op == "*" and self.repeated([node])

    def _convert(self, node: Convert) -> _Facts:
        source, target = node.source, node.target
        (given,) = (self.of(part) for part in node.parts)
        if not node.free:
            self.pay(Price(), node.parts, DOUBLE in (source, target))
        key = given.key
        if (
            isinstance(source, Scalar)
            and isinstance(target, Scalar)
            and source.dtype != target.dtype
        ):
            key = None if isinstance(node.parts[0], Constant) or key is None else (target.name, key)
        return _Facts(given.reads, given.rounds, given.depth, key)

    def _function(self, node: Function) -> _Facts:
        self.pay(node.price, node.parts, node.type is DOUBLE)
        return self._made(node)

    # -- effects

    def _work(self, step: Work) -> None:
        self.pay(step.price)

    def _store(self, step: Store) -> None:
        self.at_hand.clear()
        if not self.of(step.cell).register:
            self.pay(Price())

    def _assign(self, step: Assign) -> None:
        self.at_hand.clear()
        self._note(step)

    def _bind(self, step: Bind) -> None:
        self.depths[step.variable] = self.around.depth
        self.first[step.variable] = step.value
        self._note(step)

    def _note(self, step: Assign | Bind) -> None:
        value = self.of(step.value)
        self.waiting.assign(step.variable, value.reads, value.rounds > 0, self.around.nesting)

    def _declare(self, step: Declare) -> None:
        variable = step.variable
        if variable is not None:
            self.depths.setdefault(variable, self.around.depth)
            self.words += _words(variable)
        if not step.parameter:
            self.most_words = max(self.most_words, self.words)

    def _access(self, step: Access) -> None:
        self.sites[step.site].charge = self.charge

    def _fence(self, step: Fence) -> None:
        self.at_hand = set()

    # -- control

    def _piece(self, piece: Piece) -> None:
        outer, self.charge = self.charge, self.charges[piece.point]
        self.charge.line = piece.line
        self.charge.overlap, self.charge.nesting = self.around.overlap, self.around.nesting
        self.steps(piece.steps)
        if piece.declares and not self.charge.instructions:
            # All of it is done in front of the loop: a new variable takes the value where it is.
            self.charge.flops = self.charge.special = 0
        self.charge = outer

    def _scoped(self, step: Scoped) -> None:
        words = self.words
        self.steps(step.steps)
        self.words = words

    def _branch(self, step: Branch) -> None:
        self.charges[step.point].branch = True
        self.control.append(self.of(step.test).reads)
        before = set(self.at_hand)
        self.steps(step.then)
        if step.otherwise is not None:
            self.at_hand = before
            self.steps(step.otherwise)
        self.at_hand = set()
        self.control.pop()

    def _short_circuit(self, step: ShortCircuit) -> None:
        self.control.append(self.of(step.test).reads)
        before = set(self.at_hand)
        self._piece(step.rest)
        self.at_hand &= before
        self.control.pop()

    def _choice(self, step: Choice) -> None:
        self.control.append(self.of(step.test).reads)
        before = set(self.at_hand)
        for side in step.sides:
            self.at_hand = set(before)
            self._piece(side)
        self.at_hand = set()
        self.control.pop()

    def _selection(self, step: Selection) -> None:
        self.charges[step.point].branch = True
        self.control.append(self.of(step.subject).reads)
        for case in step.cases:
            self.at_hand = set()
            self.steps(case)
        self.at_hand = set()
        self.control.pop()

    # -- loops

    def _loop(self, loop: Loop) -> None:
        outer = self.around
        turns = unrolled_turns(loop.source, lambda node: self._number(loop, node))
        self.at_hand = set()
        if turns is not None:
            inner = _Surroundings(outer.nesting + 1, outer.depth, outer.overlap * max(1, turns))
            changed = {loop.counter: _KNOWN} if loop.counter is not None else {}
        else:
            partly = partly_unrolled(loop.source, lambda node: self._fixed(loop, node))
            overlap = outer.overlap * (PARTLY if partly else 1)
            inner = _Surroundings(outer.nesting + 1, outer.depth + 1, overlap)
            changed = dict.fromkeys(loop.changed, inner.depth)
        before = {variable: self.depths.get(variable, 0) for variable in changed}
        self.depths |= changed
        self.around = inner
        self._piece(loop.test)
        self.control.append(self.of(loop.condition).reads if loop.condition else frozenset())
        self.steps(loop.body)
        self._piece(loop.step)
        self.control.pop()
        test, step = self.charges[loop.test.point], self.charges[loop.step.point]
        test.branch, step.loop = not loop.endless, True
        if turns is not None:
            test.instructions = step.instructions = 0
        self.around = outer
        self.depths |= before
        self.at_hand = set()

    def _number(self, loop: Loop, node: Expression) -> int | None:
        """The value of a bound or step of a loop, if it is known."""
        found = self._lowered(loop, node)
        if not isinstance(found, Constant) or not is_plain(node):
            return None
        return int(found.value) if found.value == int(found.value) else None

    def _fixed(self, loop: Loop, node: Expression) -> bool:
        """Whether a compiler knows the step of a loop."""
        found = self._lowered(loop, node)
        return found is not None and is_plain(node) and self._is_known(found)

    def _is_known(self, node: Node) -> bool:
        """The same as a depth of -1, for a value that has not been walked over yet."""
        match node:
            case Constant():
                return True
            case Read():
                return self.depths.get(node.variable, 0) == _KNOWN
            case Coordinate():
                return node.name == "warpSize"
            case Operation() | Convert():
                return all(self._is_known(part) for part in node.parts)
            case _:
                return False

    def _lowered(self, loop: Loop, node: Expression) -> Node | None:
        """What became of a part of the loop's head: its first value, its bound, or its step."""
        source = loop.source
        if isinstance(source.init, Declaration) and node is source.init.items[0].init:
            return self.first.get(loop.counter) if loop.counter is not None else None
        if isinstance(source.test, Binary) and node is source.test.right:
            test = loop.condition
            return test.parts[1] if isinstance(test, Operation) else None
        if isinstance(source.step, AssignNode) and node is source.step.value:
            return _amount(loop.step)
        return None


_KEYED = {"+", "-", "*", "&", "|", "^"}


def _amount(step: Piece) -> Node | None:
    """By how much the last assignment of a piece changes its target."""
    found = [s.value for s in step.steps if isinstance(s, (Assign, Store))]
    value = found[-1] if found else None
    while isinstance(value, Convert):
        value = value.parts[0]
    return value.parts[1] if isinstance(value, Operation) and len(value.parts) > 1 else None


def _words(variable: Variable) -> int:
    """Registers of 32 bits that a variable takes, if a compiler keeps it there."""
    own = variable.thread or not variable.memory
    nbytes = size_of(variable.type) if own and not variable.parameter else 0
    return -(-nbytes // 4) if nbytes <= _IN_REGISTERS else 0
