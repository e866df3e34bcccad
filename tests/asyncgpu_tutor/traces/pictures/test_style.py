"""Pictures can be read on a grey printer and by the colour-blind: by brightness and pattern, without a hue.

Colour-blindness is simulated by the matrices (of severity 1.0, for linear RGB) of G. M. Machado,
M. M. Oliveira, L. A. F. Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency",
IEEE Transactions on Visualization and Computer Graphics 15 (2009), 1291-1298. Contrast is that of WCAG 2.1,
where text of this size needs 4.5: https://www.w3.org/TR/WCAG21/#contrast-minimum
"""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from asyncgpu_tutor.traces.pictures.style import INK, KIND_LOOKS, LIGHT, darker, lighter

EYES = {  # rows of each
    "all cones": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                     [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                     [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
ON_A_STREAM = ("h2d", "kernel", "d2h", "d2d", "memset")
seen_by = pytest.mark.parametrize("eyes", EYES)


def seen(colour: str, eyes: str) -> Any:
    """Linear RGB of a colour, as these eyes have it."""
    coded = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    return np.clip(np.asarray(EYES[eyes]) @ linear, 0, 1)


def contrast(one: str, other: str, eyes: str) -> float:
    """From 1 (none) to 21 (black on white)."""
    dark, light = sorted(
        float(seen(colour, eyes) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other)
    )
    return (light + 0.05) / (dark + 0.05)


def lab(colour: str, eyes: str) -> Any:
    """CIE L*a*b* under D65, where a distance of about 2 can just be seen."""
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    # None is near 0.
    x, y, z = np.cbrt(np.array(to_xyz) @ seen(colour, eyes) / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


BARS = [look.colour for look in KIND_LOOKS.values()]
READ = [  # what is read on which grounds, and the least contrast; 7 is WCAG 2.1's enhanced one
    *((INK, ground, 4.5) for ground in BARS),
    *((INK, lighter(ground), 7) for ground in BARS),  # names in a pattern
    *((LIGHT["quiet"], ground, 4.5) for ground in ("#FFFFFF", "#F4F4F4")),
    *((darker(colour), colour, 1.5) for colour in BARS),  # a pattern and an outline
]


@seen_by
def test_all_that_is_written_can_be_read(eyes: str) -> None:
    assert [one for one in READ if contrast(one[0], one[1], eyes) < one[2]] == []


IN_TURN = [KIND_LOOKS[kind].colour for kind in ("h2d", "kernel", "d2h")]


@seen_by
def test_copy_kernel_and_copy_differ_in_grey_and_in_colour_for_all_eyes(eyes: str) -> None:
    for one, other in combinations(IN_TURN, 2):
        assert contrast(one, other, "all cones") > 1.3
        assert np.linalg.norm(lab(one, eyes) - lab(other, eyes)) > 20


def test_all_that_shares_a_lane_differs_in_pattern() -> None:
    for kinds in (ON_A_STREAM, ("call", "wait", "work")):
        assert len({KIND_LOOKS[kind].hatch for kind in kinds}) == len(kinds)
