// Selection: out = [x[i] for i in 0 .. n if flag(x[i])], in the input's order; count = the length of out.
//
// Partitions, the runs of equal elements, and selections of values and indices are variants; lib/select.cl defines them
// all.
#include "lib/select.cl"
#include "lib/select_finish.cl"

#if WG == 1
#include "select_cpu.cl"
#else
#include "select_gpu.cl"
#endif
