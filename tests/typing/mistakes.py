"""Mistakes that pyright must refuse, one on each marked line. Nothing runs this file."""

from __future__ import annotations

import asyncgpu_tutor as agt

n = agt.value(3)

not_an_op: agt.DeviceOp[int] = n.map(str)  # mistake
no_op_from_the_function = n.and_then(lambda count: count)  # mistake
not_a_tuple = n.first()  # mistake
not_a_combinator = n.then(lambda count: count)  # mistake
a_number_among_ops = agt.zip(n, 3)  # mistake
text: str = n.sync()  # mistake
