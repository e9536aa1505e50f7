// A user's operator over elements of any plain type. The host puts its text first: the macro OPERATOR, the type T of
// T_BYTES bytes, op_combine(a, b), op_identity(). Without the text, tools that read a kernel alone get sums of float.
#ifndef OPERATOR
#define T float
#define T_BYTES 4
static inline T op_combine(const T a, const T b) { return a + b; }
static inline T op_identity(void) { return 0; }
#endif

#include "lib/compiler.cl"
