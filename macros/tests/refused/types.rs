use oclprim_macros::{device, operator};

#[device]
fn reference(a: &u32) -> u32 {
    *a
}

#[device]
fn tuple(a: (u32, u32)) -> u32 {
    1
}

#[device]
fn pointer_sized(a: usize) -> u32 {
    1
}

#[device]
fn wide(a: u128) -> u32 {
    1
}

#[operator(identity = 0.0)]
fn half(a: f16, b: f16) -> f16 {
    a + b
}

#[device]
fn generic_type(a: Option<u32>) -> u32 {
    1
}

#[device]
fn of_a_variable(a: u32) -> u32 {
    let x: i128 = 3;
    a
}

#[device]
fn to_a_struct(a: u32) -> u32 {
    a as Meters
}

fn main() {}
