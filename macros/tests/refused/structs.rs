use oclprim_macros::SharedType;

#[derive(SharedType)]
enum Choice {
    One,
    Two,
}

#[derive(SharedType)]
struct InRust {
    x: u32,
}

#[derive(SharedType)]
#[repr(C, packed)]
struct Packed {
    x: u8,
    y: u32,
}

#[derive(SharedType)]
#[repr(C)]
struct OfAnyType<T> {
    x: T,
}

#[derive(SharedType)]
#[repr(C)]
struct Empty {}

#[derive(SharedType)]
#[repr(C)]
struct WithText {
    name: String,
}

#[derive(SharedType)]
#[repr(C)]
struct WithIndex {
    index: usize,
}

#[derive(SharedType)]
#[repr(C)]
struct WithTuple {
    ends: (u32, u32),
}

const N: usize = 4;

#[derive(SharedType)]
#[repr(C)]
struct LongArray {
    x: [f32; N],
}

fn main() {}
