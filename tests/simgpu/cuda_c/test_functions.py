"""Each function of CUDA C computes what was recorded, and costs that."""

import json
import re

import numpy as np

from .functions import FUNCTIONS, HEAD, OTHERS, TABLES, measured

RECORDED = json.loads(FUNCTIONS.read_text())


def test_each_function_computes_what_it_did_and_costs_as_much() -> None:
    again = "if that was meant, record it again: python -m tests.simgpu.cuda_c.digests costs"
    found = measured([*RECORDED])
    others = {
        call: (costs, RECORDED[call][0])
        for call, (costs, _) in found.items()
        if costs != RECORDED[call][0]
    }
    assert not others, again
    for call, (_, values) in found.items():
        np.testing.assert_allclose(values, RECORDED[call][1], rtol=1e-4, err_msg=f"{call}: {again}")


def test_no_function_is_missing() -> None:
    """It would have no name here if a table had another one for it."""
    names = {name for table in (*TABLES, *OTHERS) for name in table}
    assert names <= {*re.findall(r"\w+", HEAD + " ".join(RECORDED))}
