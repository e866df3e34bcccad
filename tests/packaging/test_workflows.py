"""Who may write to the repository runs nothing that was installed."""

from typing import Any

import pytest
import yaml

from tests.tools import ROOT

FILES = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_job_that_may_write_installs_nothing(file: Any) -> None:
    workflow: Any = yaml.safe_load(file.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        if job.get("permissions", {}).get("contents") == "write":
            steps = " ".join(step.get("uses", "") + step.get("run", "") for step in job["steps"])
            assert not [word for word in ("pip", "python", "make ") if word in steps]
