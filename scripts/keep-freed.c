// Keeps the last small blocks that were freed from being used again; to be loaded before the C library.
//
// PoCL 5 and 6 note by the address of an LLVM instruction whether all work-items have its value in common, and never forget it
// (VariableUniformityAnalysisResult::invalidate). An instruction that comes to lie where another one was freed inherits that one's
// note, so that now and then work-items share one copy of what is each one's own.
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>

#define KEPT (1u << 17)
#define SMALL 256

void __libc_free(void* block);

static _Atomic(void*) kept[KEPT];
static atomic_uint next;

void free(void* block)
{
    if (block != NULL && malloc_usable_size(block) <= SMALL) {
        block = atomic_exchange(&kept[atomic_fetch_add(&next, 1) % KEPT], block);
    }
    __libc_free(block);
}
