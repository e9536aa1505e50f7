use oclprim_macros::{operator, order};

#[operator]
fn without_identity(a: u32, b: u32) -> u32 {
    a + b
}

#[operator(neutral = 0)]
fn other_name(a: u32, b: u32) -> u32 {
    a + b
}

#[operator(identity = 0)]
fn of_three(a: u32, b: u32, c: u32) -> u32 {
    a + b + c
}

#[operator(identity = 0)]
fn of_two_types(a: u32, b: u64) -> u32 {
    a + b as u32
}

#[operator(identity = 0)]
fn to_another_type(a: u32, b: u32) -> u64 {
    a as u64 + b as u64
}

#[order(identity = 0)]
fn with_identity(a: u32, b: u32) -> bool {
    a < b
}

#[order]
fn to_a_number(a: u32, b: u32) -> i32 {
    a as i32 - b as i32
}

fn main() {}
