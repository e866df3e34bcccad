"""Files of traces: our own, Perfetto's, Chrome's, exports of Nsight Systems, recordings that are shipped."""
