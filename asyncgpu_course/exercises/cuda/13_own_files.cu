#include "hostcall.cuh"
// Reading and writing are services of the check's own.
#undef HOSTCALL_READ
#undef HOSTCALL_WRITE
#define HOSTCALL_READ 16
#define HOSTCALL_WRITE 17
