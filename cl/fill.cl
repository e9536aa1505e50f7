// Fills a range of bytes in place of a driver's own fill. The host uses it where a driver's fill is slow, or fails
// beyond byte 2^30 of a buffer. It also uses it on Oclgrind, which checks the stores of kernels.
//
// `word` is the pattern repeated to 16 bytes. The pattern's size divides 16 and the range's offset, so that every
// 16-byte word of the buffer starts with a whole pattern.
#ifndef WG
#define WG 64
#endif

// The grid may have any size. The first work-items also write the head and the tail, less than 16 bytes each.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void fill(__global uchar* restrict out, const ulong offset,
                                                                   const ulong bytes, const uint4 word)
{
    const ulong end = offset + bytes, item = get_global_id(0);
    const ulong first = min((offset + 15) / 16 * 16, end), last = max(end / 16 * 16, first);
    for (ulong i = first / 16 + item; i < last / 16; i += get_global_size(0)) {
        ((__global uint4*)out)[i] = word;
    }
    const uint part[4] = {word.x, word.y, word.z, word.w};
    if (item < 16) {
        const uchar byte = (uchar)(part[item / 4] >> 8 * (item % 4));
        const ulong head = offset / 16 * 16 + item, tail = last + item;
        if (head >= offset && head < first) {
            out[head] = byte;
        }
        if (tail < end) {
            out[tail] = byte;
        }
    }
}
