// Delays the reuse of small freed blocks; to be preloaded before the C library.
//
// PoCL 5 and 6 store, by the address of an LLVM instruction, whether all work-items have the same value of it. They
// never remove the entry (VariableUniformityAnalysisResult::invalidate). A new instruction at the address of a freed
// one inherits its entry. Then work-items sometimes share one copy of a private value.
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
