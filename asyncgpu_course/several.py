"""Several GPUs for a page, on any machine."""

import asyncgpu_tutor as agt


def several(most: int) -> list[agt.types.Device]:
    """Return up to `most` GPUs of the kind in use; simulated ones, and a sentence, where it has only one."""
    kind = agt.current_device().name.partition(":")[0]
    found: list[agt.types.Device] = []
    try:
        for number in range(most):
            with agt.using(f"{kind}:{number}") as device:
                found.append(device)
    except agt.errors.DeviceUnavailableError:
        if len(found) == 1:
            said = "This machine has one GPU, and this page needs two. So it uses simulated ones."
            print(said)  # noqa: T201 - a cell's output
            agt.use("sim")
            return several(most)
    return found
