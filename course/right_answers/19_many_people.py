"""Other right answers to the exercises of course/19_many_people.py; see tools/build_notebooks.py."""


# %% id=19-refill
def serve(room):
    sits = {}
    while room.open or sits:
        for slot in set(range(room.count)) - sits.keys():
            visitor = room.next()
            if visitor is None:
                break
            sits[slot] = visitor
            room.seat(slot, visitor)
        tokens = room.wait(room.start())
        now = room.now()
        for slot, visitor in [*sits.items()]:
            if visitor.hear(tokens[slot], now):
                del sits[slot]


# %% id=19-door
async def ask(desk, visitor):
    try:
        if len(desk.line) >= desk.most:
            raise agt.errors.ServerBusyError
        desk.line.append(visitor)
        while True:
            token = await visitor.next()
            if token is None:
                break
            yield token
    finally:
        visitor.gone = True
        desk.line[:] = [other for other in desk.line if other is not visitor]


# %% id=19-door
from contextlib import contextmanager, suppress


@contextmanager
def listening(desk, visitor):
    try:
        yield
    finally:
        visitor.gone = True
        with suppress(ValueError):
            desk.line.remove(visitor)


async def ask(desk, visitor):
    if not len(desk.line) < desk.most:
        raise agt.errors.ServerBusyError(f"{len(desk.line)} are waiting")
    desk.line.append(visitor)
    with listening(desk, visitor):
        while (token := await visitor.next()) is not None:
            yield token


# %% id=19-door
# - if len(desk.line) >= desk.most:
# + desk.line.append(visitor)
# + if len(desk.line) > desk.most:
# +     desk.line.pop()  # before anybody else has a turn
# - desk.line.append(visitor)


# %% id=19-early
def talk(steps, rounds):
    said, before = [], None
    for number in range(rounds + 1):
        step = steps[number % 2]
        if number < rounds:
            step.start()
        if before is not None:
            before.over.synchronize()
            said.append([int(token) for token in before.tokens])
        before = step
    return said


# %% id=19-pair
def pair(Step, seats, stream):
    return [Step(seats, stream, seats.newcomers(), agt.pinned(seats.count, np.int32)) for _ in range(2)]


# %% id=19-pair
def pair(Step, seats, stream):
    def step():
        return Step(seats, stream, seats.newcomers(), agt.pinned((seats.count,), "int32"))

    return step(), step()


# %% id=19-strangers
def strangers(steps, told):
    pairs = [pair for step in steps for pair in step]
    names = []
    for name, text in told.items():
        own = [token for owner, token in pairs if owner == name]
        if len(text) > len(own) or any(a != b for a, b in zip(text, own)):
            names.append(name)
    return names


# %% id=19-ahead
def ahead(room):
    sits = [None] * room.count
    before = None
    while room.open or any(sits):
        for slot, visitor in enumerate(sits):
            if visitor is None or visitor.gone or visitor.over:
                sits[slot] = room.next()
                if sits[slot]:
                    room.seat(slot, sits[slot])
        now = room.start(), tuple(sits)
        if before:
            for visitor, token in zip(before[1], room.wait(before[0])):
                if visitor and not visitor.gone and not visitor.over:
                    visitor.hear(token, room.now())
        before = now
        sits = [visitor if visitor and not visitor.over else None for visitor in sits]


# %% id=19-ahead
def ahead(room):  # which knows when a text ends
    sits, left, under_way = [None] * room.count, [0] * room.count, []
    while room.open or any(sits) or under_way:
        for slot, visitor in enumerate(sits):
            if visitor and (visitor.gone or left[slot] == 0):
                sits[slot] = None
            if sits[slot] is None and (visitor := room.next()):
                sits[slot], left[slot] = visitor, visitor.last
                room.seat(slot, visitor)
        if any(sits) or room.open:
            under_way.append((room.start(), sits.copy()))
            left = [steps - 1 for steps in left]
        if len(under_way) == 2 or not any(sits):
            number, sat = under_way.pop(0)
            tokens = room.wait(number)
            for slot, visitor in enumerate(sat):
                if visitor and not visitor.over and not visitor.gone:
                    visitor.hear(tokens[slot], room.now())
