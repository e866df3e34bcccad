"""What is recorded of chapters 11 to 14 runs the kernels that the pages show."""

from __future__ import annotations

from pathlib import Path

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.profile import RUNS, driven, gallery

COURSE = Path(__file__).parents[3] / "course"
PAGES = {"11_the_gpu_decides", "12_async_inside_a_kernel", "13_hostcalls", "14_gallery"}
KERNELS = [
    k for module in (driven, gallery) for k in vars(module).values() if isinstance(k, agt.Kernel)
]


@pytest.fixture(scope="module")
def pages() -> str:
    return "".join((COURSE / f"{name}.py").read_text(encoding="utf-8") for name in PAGES)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_a_kernel_is_the_pages(kernel: agt.Kernel, pages: str) -> None:
    behind_headers = kernel.source.rpartition("#endif")[2]
    for part in behind_headers.split(driven.JOB):
        assert part.strip() in pages


def test_the_job_is_the_pages(pages: str) -> None:
    assert driven.JOB in pages


def test_each_page_from_11_on_has_programs() -> None:
    assert {name[:2] for name in RUNS if name > "11"} == {"11", "12", "13", "14"}
