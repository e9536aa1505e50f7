// Delays the reuse of small pieces of freed memory. Preload it before the C library.
//
// PoCL 5 and 6 store, for the address of each LLVM instruction, whether its value is the same in all work-items. They
// never remove an entry (VariableUniformityAnalysisResult::invalidate). A new instruction at the address of a freed
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
