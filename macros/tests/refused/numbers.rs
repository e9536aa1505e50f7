use oclprim_macros::{device, map};

#[device]
fn counter(a: u32) -> u32 {
    let mut n = 0;
    while n < a {
        n += 1;
    }
    n
}

#[device]
fn range(a: u32) -> u32 {
    let mut sum = a;
    for i in 0..3 {
        sum += 1;
    }
    sum
}

#[device]
fn integer_as_float(a: f32) -> f32 {
    a + 1
}

#[device]
fn argument(a: f32) -> f32 {
    square(1.5) + a
}

#[device]
fn shifted(a: u32) -> u32 {
    let x: u32 = (1 << 3) + (1 << a).count_ones();
    x
}

#[device]
fn of_no_type(a: u32) -> u32 {
    a + 1usize64
}

fn main() {
    let flag = map!(|x: f32| if x > 0.5 { 1 } else { 0 });
}
