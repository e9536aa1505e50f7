// A partial: the aggregate of contiguous elements and, with SEGMENTED, whether there is a segment head among them.
//
//     (a, f) op (b, g) = (g ? b : a op b, f or g)
//
// So a partial's value combines only the elements from the last segment head on. Without SEGMENTED a partial is a value
// alone. Needs the type A, OP and OP_IDENTITY.

#ifndef SEGMENTED
#define SEGMENTED 0
#endif

#if SEGMENTED
typedef struct {
    A value;
    uint head;
} Partial;
static inline Partial partial(A value, uint head) { return (Partial){ value, head }; }
static inline A value_of(Partial x) { return x.value; }
static inline uint head_of(Partial x) { return x.head; }
// From and to global or local memory. Mesa 25 loses structs that are copied from and to local memory as a whole.
#define LOAD_PARTIAL(from) partial((from).value, (from).head)
#define STORE_PARTIAL(to, x) ((to).value = value_of(x), (to).head = head_of(x))
#else
typedef A Partial;
static inline Partial partial(A value, uint head) { return value; }
static inline A value_of(Partial x) { return x; }
static inline uint head_of(Partial x) { return 0; }
#define LOAD_PARTIAL(from) (from)
#define STORE_PARTIAL(to, x) ((to) = (x))
#endif

// a op b, or b if there is a segment head in b.
static inline A join_values(A a, A b, uint head) { return SEGMENTED && head ? b : OP(a, b); }

static inline Partial join(Partial a, Partial b)
{
    return partial(join_values(value_of(a), value_of(b), head_of(b)), head_of(a) | head_of(b));
}

static inline Partial identity_partial(void) { return partial(OP_IDENTITY, 0); }

// The prefix before an element: `prefix`, or `initial` if the element is a segment head.
static inline A restart(A initial, A prefix, uint head) { return SEGMENTED && head ? initial : prefix; }

// The prefix after a partial.
static inline A extend(A initial, A prefix, Partial x) { return OP(restart(initial, prefix, head_of(x)), value_of(x)); }
