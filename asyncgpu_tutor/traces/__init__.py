"""Everything that you see: spans, the files that hold them, the numbers read out of them, and their pictures.

In this order; nothing here imports what stands above it:

    analysis    what a trace tells of its program, and how two runs differ
    pictures    timelines; the only part that needs matplotlib, and only when something is drawn
    trace       `Trace`: all spans of a run, with all that can be asked of them
    formats     files: this package's own, Chrome's, exports of Nsight Systems, shipped recordings
    spans       one interval on one lane, and what is computed from many
    nvtx        ranges for a profiler, beside all of these
"""
