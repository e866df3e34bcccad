"""Files of traces: our own, Chrome's, exports of Nsight Systems, recordings that are shipped."""
