// Words of 16 bytes, each put together from two aligned words that it straddles. The device is little-endian.

// Bytes shift .. shift + 16 of the 32 bytes (lo, hi), for shift < 16. Any work-item may call it. If `shift` is uniform,
// so is each choice below. On devices with a funnel shift, `upsample` and the right shift become one instruction.
static inline uint4 funnel(uint4 lo, uint4 hi, uint shift)
{
    // First by eight bytes, ...
    const bool far = shift & 8;
    const uint a = far ? lo.z : lo.x, b = far ? lo.w : lo.y, c = far ? hi.x : lo.z;
    const uint d = far ? hi.y : lo.w, e = far ? hi.z : hi.x, f = far ? hi.w : hi.y;
    // ... then by four, ...
    const bool odd = shift & 4;
    const uint p = odd ? b : a, q = odd ? c : b, r = odd ? d : c, s = odd ? e : d, t = odd ? f : e;
    // ... then by bytes.
    return convert_uint4(upsample((uint4)(q, r, s, t), (uint4)(p, q, r, s)) >> (ulong)(shift % 4 * 8));
}
