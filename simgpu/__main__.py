"""`python -m simgpu` lists the GPUs that can be simulated."""

from simgpu.gpus import SPECS


def main() -> None:
    """Print a line for each of them."""
    for name, spec in SPECS.items():
        gigabytes = spec.memory_bytes / 1e9
        print(f"{name:<8} {spec.name}: {spec.sms} SMs, {gigabytes:.0f} GB")


if __name__ == "__main__":
    main()
