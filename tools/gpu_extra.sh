#!/bin/sh
# Prints the extra that brings the CuPy for this machine's NVIDIA driver, as ",cuda12" or ",cuda13", or nothing
# where there is no driver. $CUDA_EXTRA overrides: "cuda12", "cuda13" or "none".

case "$CUDA_EXTRA" in
none) exit 0 ;;
?*)
    echo ",$CUDA_EXTRA"
    exit 0
    ;;
esac

command -v nvidia-smi >/dev/null 2>&1 || exit 0

# "CUDA Version: 13.0" in the header of nvidia-smi is the newest CUDA that the driver runs.
major=$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA[^:]*Version: *\([0-9][0-9]*\)\..*/\1/p' | head -n 1)

case "$major" in
"") ;;                # the tool is there and finds no working driver
[0-9] | 10 | 11) ;;   # too old for any CuPy that this course supports; the doctor says so
12) echo ",cuda12" ;;
*) echo ",cuda13" ;;
esac
