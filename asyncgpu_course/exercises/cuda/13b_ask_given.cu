#include "hostcall.cuh"
#include "device_async.cuh"
