"""The instructions in the bundle name what is there. That its wheels suffice, the tool checks itself."""

import re

from asyncgpu_course.__main__ import EVERY_COMMAND
from tests.tools import tool


def test_the_page_of_instructions_names_what_the_bundle_and_the_package_have() -> None:
    bundle = tool("bundle")
    systems = ", ".join(bundle.SYSTEMS)
    page = bundle.INSTRUCTIONS.format(python="3.12", count=145, size=170, systems=systems)
    assert set(re.findall(r"asyncgpu-tutor\s([a-z]+)", page)) <= EVERY_COMMAND.keys()
    assert "--no-index --find-links wheels" in page
    assert all(system in page for system in ("Linux", "macOS", "Windows"))
