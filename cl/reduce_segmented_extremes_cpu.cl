// segment_extremes on CPU drivers: one work-item walks a tile (reduce_segmented_extremes.cl).

// Elements whose smallest key is found first, and then its index.
#define CHUNK 256

// Takes the elements with the indices [start, end).
static inline void walk(__global const T* in, const OFFSET_T start, const OFFSET_T end, Best* best)
{
    uint count;
    for (OFFSET_T i = start; i < end; i += count) {
        count = (uint)min((OFFSET_T)CHUNK, (OFFSET_T)(end - i));
        __global const T* chunk = in + i;
        for (uint e = 0; e < ENDS; e++) {
            KEY_T least = key_at(to_acc(chunk[0]), e);
            for (uint k = 1; k < count; k++) {
                least = min(least, key_at(to_acc(chunk[k]), e));
            }
            if (least < best->key[e] || best->at[e] == NOWHERE) {
                uint k = 0;
                while (key_at(to_acc(chunk[k]), e) != least) {
                    k++;
                }
                best->key[e] = least;
                best->at[e] = i + k;
            }
        }
    }
}

// Work-group g takes tile g.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segment_extremes(
    CALL_PARAMS, __global uchar* scratch, const ulong nodes)
{
    const Call call = CALL;
    const OFFSET_T t = get_group_id(0);
    const Tile tile = tile_of(&call, scratch, nodes, t);
    const OFFSET_T end = tile.base + tile.elements;
    Node node = empty_node();
    OFFSET_T at = tile.base;
    for (OFFSET_T rank = tile.low; rank < tile.low + tile.offsets; rank++) {
        const OFFSET_T offset = offset_at(&call, rank);
        if (offset < at || offset > end) {
            continue;
        }
        walk(call.in, at, offset, &node.suffix);
        at = offset;
        if (node.first == NOWHERE) {
            node.first = rank;
            node.prefix = node.suffix;
        } else {
            store_winner(&call, rank, &node.suffix);
        }
        node.suffix = nothing_yet();
    }
    walk(call.in, at, end, &node.suffix);
    if (node.first == NOWHERE) {
        node.prefix = node.suffix;
    }
    store_node(scratch, nodes, t, &node);
}
