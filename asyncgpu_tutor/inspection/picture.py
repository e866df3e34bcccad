"""The roofline, drawn. Only this module of the microscope imports matplotlib."""

# The types of matplotlib leave **kwargs without one: each of its methods is "partially unknown".
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from asyncgpu_tutor.devices.simulated import DeviceSpec
from asyncgpu_tutor.devices.simulated.report import KernelReport, load_store_gb_s, peak_gflops
from asyncgpu_tutor.traces.pictures.style import COLOURS, INK, QUIET, RULE, darker

_SIZE = (8.0, 4.96)  # inches
# Kernels can be told apart by these shapes, without colour.
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")


def draw(spec: DeviceSpec, kernels: Sequence[KernelReport]) -> Axes:
    """See `Report.plot`."""
    drawn = [kernel for kernel in kernels if kernel.flops]
    pads = ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.08)
    _, ax = plt.subplots(figsize=_SIZE, layout=pads)
    peak, memory, units = peak_gflops(spec), spec.dram_gb_s, load_store_gb_s(spec)
    places = [x for k in drawn for x in (k.intensity, k.intensity_moved) if x]
    left = min([peak / units / 30, *(x / 3 for x in places)])
    right = max([peak / memory * 10, *(x * 3 for x in places)])
    _frame(ax, spec, left, right)
    ax.set_ylim(min([memory * left, *(k.gflops / 3 for k in drawn)]), peak * 4)
    _roof(ax, left, right, memory, peak, f"memory {memory / 1e3:.3g} TB/s", "-")
    _roof(ax, left, right, spec.l2_gb_s, peak, f"L2 {spec.l2_gb_s / 1e3:.3g} TB/s", "-.")
    _roof(ax, left, right, units, peak, f"load-store units {units / 1e3:.3g} TB/s", "--")
    ax.text(
        right, peak * 1.12, f"arithmetic {peak / 1e3:.3g} TFLOP/s",
        ha="right", va="bottom", fontsize=8, color=INK,
    )  # fmt: skip
    handles = [_kernel(ax, kernel, number) for number, kernel in enumerate(drawn)]
    _legend(ax, handles, [kernel.name for kernel in kernels if not kernel.flops])
    return ax


def _frame(ax: Axes, spec: DeviceSpec, left: float, right: float) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(left, right)
    ax.set_xlabel("arithmetic intensity (FLOP / byte)", fontsize=9)
    ax.set_ylabel("modelled GFLOP/s", fontsize=9)
    ax.tick_params(labelsize=8, colors=QUIET, which="both")
    ax.grid(color="#DDDDDD", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(RULE)
    ax.set_title("Roofline", loc="left", fontsize=11, fontweight="bold", color=INK, pad=18)
    ax.annotate(
        f"modelled, not measured  \u00b7  simulated {spec.name}",
        (0, 1), xytext=(0, 5), xycoords="axes fraction", textcoords="offset points",
        fontsize=8.5, color=QUIET, annotation_clip=False, gid="subtitle",
    )  # fmt: skip


def _roof(
    ax: Axes, left: float, right: float, slope: float, peak: float, name: str, style: str
) -> None:
    ridge = peak / slope
    ax.plot(
        [left, ridge, right], [slope * left, peak, peak],
        color=INK, linewidth=1.4, linestyle=style, zorder=2, gid=f"roof:{name}", label="_roof",
    )  # fmt: skip
    # The lowest roof is named below its line, the others above theirs.
    x = left * (ridge / left) ** (0.6 if style == "-." else 0.42)
    above = style != "-"
    ax.annotate(
        name, (x, slope * x), xytext=(-4, 4) if above else (4, -4), textcoords="offset points",
        ha="right" if above else "left", va="bottom" if above else "top", fontsize=8, color=INK,
    )  # fmt: skip


def _kernel(ax: Axes, kernel: KernelReport, number: int) -> Line2D:
    mark, colour = _MARKS[number % len(_MARKS)], COLOURS[number % len(COLOURS)]
    x, moved, y = kernel.intensity, kernel.intensity_moved, kernel.gflops
    edge = darker(colour)
    if moved and x:
        ax.plot([moved, x], [y, y], color=edge, linewidth=0.9, linestyle=":", zorder=3)
    ax.plot(
        [moved], [y], marker=mark, markersize=9, markerfacecolor="white", markeredgecolor=edge,
        markeredgewidth=1.6, linestyle="none", zorder=4, gid=f"moved:{kernel.name}",
    )  # fmt: skip
    (filled,) = ax.plot(
        [x], [y], marker=mark, markersize=9, markerfacecolor=colour, markeredgecolor=edge,
        linestyle="none", zorder=5, gid=f"needed:{kernel.name}",
        label=f"{kernel.name}: {kernel.bound}, {kernel.under_roof:.1%} of the roof",
    )  # fmt: skip
    return filled


def _legend(ax: Axes, handles: Sequence[Line2D], left_out: Sequence[str]) -> None:
    keys = [*handles]
    if handles:
        for words, face in (("per byte needed", QUIET), ("per byte moved", "white")):
            keys.append(
                Line2D([], [], marker="o", linestyle="none", markersize=7, markerfacecolor=face,
                       markeredgecolor=QUIET, label=words)
            )  # fmt: skip
    if left_out:
        names = ", ".join(dict.fromkeys(left_out))
        keys.append(
            Line2D([], [], linestyle="none", label=f"no floating-point arithmetic: {names}")
        )
    if keys:
        ax.legend(
            handles=keys, loc="upper left", bbox_to_anchor=(0, -0.13), ncols=2, fontsize=8,
            frameon=False, borderaxespad=0, borderpad=0, columnspacing=1.4, handlelength=1.4,
        )  # fmt: skip
