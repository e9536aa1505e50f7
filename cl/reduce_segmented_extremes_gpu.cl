// segment_extremes for work-groups: each work-item takes STEPS steps of a tile (reduce_segmented_extremes.cl).
//
// Local memory holds the tile's elements and offsets. The winners of segments wait there, so that neighbouring
// work-items store neighbouring results. STEPS is odd, so that neighbouring work-items read from different banks.

// Elements or offsets that a work-item has in flight.
#define IN_FLIGHT 5
// Positions fit 16 bits. NONE: no winner, or an offset beyond the tile. IGNORED: the tile has no result for the offset.
#define NONE 0xffff
#define IGNORED 0xfffe

// Loads the tile's elements and the positions of its offsets. Ends with a barrier.
INLINED void load_tile(
    const Call* call, const Tile* tile, __local T* elements, __local ushort* positions, __local ushort* winners)
{
    const uint item = get_local_id(0);
    for (uint i = item; i < tile->elements; i += IN_FLIGHT * WG) {
        T x[IN_FLIGHT];
        UNROLL
        for (uint h = 0; h < IN_FLIGHT; h++) {
            x[h] = call->in[tile->base + min(i + h * WG, tile->elements - 1)];
        }
        UNROLL
        for (uint h = 0; h < IN_FLIGHT; h++) {
            if (i + h * WG < tile->elements) {
                elements[i + h * WG] = x[h];
            }
        }
    }
    for (uint i = item; i < tile->offsets; i += IN_FLIGHT * WG) {
        OFFSET_T position[IN_FLIGHT];
        UNROLL
        for (uint h = 0; h < IN_FLIGHT; h++) {
            position[h] = offset_at(call, tile->low + min(i + h * WG, tile->offsets - 1)) - tile->base;
        }
        UNROLL
        for (uint h = 0; h < IN_FLIGHT; h++) {
            if (i + h * WG < tile->offsets) {
                positions[i + h * WG] = position[h] <= tile->elements ? (ushort)position[h] : NONE;
                for (uint e = 0; e < ENDS; e++) {
                    winners[e * TILE + i + h * WG] = IGNORED;
                }
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// Returns how many of the offsets are among the first steps of the tile.
INLINED uint split_here(__local const ushort* positions, const Tile* tile, uint steps)
{
    uint low = steps > tile->elements ? steps - tile->elements : 0, high = min(steps, tile->offsets);
    while (low < high) {
        const uint middle = low + (high - low) / 2;
        if (positions[middle] < steps - middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

INLINED void put_winner(__local ushort* winners, uint offset, const Best* best)
{
    UNROLL
    for (uint e = 0; e < ENDS; e++) {
        winners[e * TILE + offset] = best->at[e] == NOWHERE ? NONE : (ushort)best->at[e];
    }
}

// Takes the work-item's steps. Makes its node, whose indices are positions in the tile.
INLINED void take_steps(
    const Tile* tile, __local const T* elements, __local const ushort* positions, __local ushort* winners, Node* made)
{
    const uint steps = min((uint)get_local_id(0) * STEPS, tile->elements + tile->offsets);
    uint offset = split_here(positions, tile, steps), at = steps - offset;
    Node node = empty_node();
    for (uint k = 0; k < STEPS; k++) {
        if (offset < tile->offsets && positions[offset] == at) {
            if (node.first == NOWHERE) {
                node.first = offset;
                node.prefix = node.suffix;
            } else {
                put_winner(winners, offset, &node.suffix);
            }
            node.suffix = nothing_yet();
            offset++;
        } else if (at < tile->elements) {
            const A x = to_acc(elements[at]);
            UNROLL
            for (uint e = 0; e < ENDS; e++) {
                const KEY_T key = key_at(x, e);
                if (key < node.suffix.key[e] || node.suffix.at[e] == NOWHERE) {
                    node.suffix.key[e] = key;
                    node.suffix.at[e] = at;
                }
            }
            at++;
        }
    }
    if (node.first == NOWHERE) {
        node.prefix = node.suffix;
    }
    *made = node;
}

// Joins the nodes of the work-items; work-item 0 gets the tile's. Ends with a barrier.
INLINED void join_items(Node* node, __local Node* shared, __local ushort* winners)
{
    const uint item = get_local_id(0);
    shared[item] = *node;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = 1; d < WG; d <<= 1) {
        if ((item & (2 * d - 1)) == 0) {
            const Node right = shared[item + d];
            Best across;
            if (join(node, &right, &across)) {
                put_winner(winners, (uint)right.first, &across);
            }
            shared[item] = *node;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// Makes the indices of a node count from the start of the input.
static inline void move_node(Node* node, const Tile* tile)
{
    for (uint e = 0; e < ENDS; e++) {
        node->prefix.at[e] += node->prefix.at[e] == NOWHERE ? 0 : tile->base;
        node->suffix.at[e] += node->suffix.at[e] == NOWHERE ? 0 : tile->base;
    }
    node->first += node->first == NOWHERE ? 0 : tile->low;
}

// Work-group g takes tile g.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segment_extremes(
    CALL_PARAMS, __global uchar* scratch, const ulong nodes)
{
    __local T elements[TILE];
    __local ushort positions[TILE], winners[ENDS * TILE];
    __local Node shared[WG];
    const Call call = CALL;
    const OFFSET_T t = get_group_id(0);
    const Tile tile = tile_of(&call, scratch, nodes, t);
    load_tile(&call, &tile, elements, positions, winners);
    Node node;
    take_steps(&tile, elements, positions, winners, &node);
    join_items(&node, shared, winners);
    if (get_local_id(0) == 0) {
        move_node(&node, &tile);
        store_node(scratch, nodes, t, &node);
    }
    for (uint i = get_local_id(0); i < tile.offsets; i += WG) {
        const OFFSET_T rank = tile.low + i;
        UNROLL
        for (uint e = 0; e < ENDS; e++) {
            const uint winner = winners[e * TILE + i];
            if (winner != IGNORED && rank > 0) {
                store_result(&call, rank - 1, e, winner == NONE ? NOWHERE : tile.base + winner);
            }
        }
    }
}
