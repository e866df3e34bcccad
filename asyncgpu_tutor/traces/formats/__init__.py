"""Files of traces: our own, Perfetto's, Chrome's, exports of Nsight Systems, and the recordings that are shipped."""
