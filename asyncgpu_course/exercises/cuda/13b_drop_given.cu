#include "hostcall_async.cuh"
