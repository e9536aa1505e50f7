use oclprim_macros::device;

#[device]
fn method(a: u32) -> u32 {
    a.pow(2) + 1
}

#[device]
fn too_many_arguments(a: u32) -> u32 {
    a.min(1, 2)
}

#[device]
fn associated_function(a: u32) -> u32 {
    a + u32::max(a, 1)
}

#[device]
fn conversion(a: u16) -> u32 {
    u32::from(a)
}

#[device]
fn of_std(a: f32, b: f32) -> f32 {
    std::cmp::max(a, b)
}

#[device]
fn static_limit(a: u32) -> u32 {
    if a > LIMIT { LIMIT } else { a }
}

#[device]
fn constant_of_a_type(a: f32) -> f32 {
    a * f32::RADIX
}

#[device]
fn closure(a: u32) -> u32 {
    let twice = |x: u32| 2 * x;
    twice(a)
}

#[device]
fn call_of_a_field(a: Rule) -> u32 {
    (a.rule)(1)
}

#[device]
fn guard(a: u32, b: u32) -> u32 {
    match a {
        1 if b > 0 => 2,
        _ => 3,
    }
}

#[device]
fn match_on_floats(a: f32) -> u32 {
    match a {
        0.0 => 1,
        _ => 2,
    }
}

#[device]
fn if_let(a: u32) -> u32 {
    if let 1..=9 = a { 1 } else { 0 }
}

#[device]
fn question_mark(a: u32) -> u32 {
    a.checked_add(1)?
}

#[device]
fn pair(a: u32, b: u32) -> u32 {
    (a, b).0
}

#[device]
fn array(a: u32) -> u32 {
    let x = [a, 2 * a];
    x[1]
}

#[device]
fn other_fields(a: Pair) -> Pair {
    Pair { x: 1, ..a }
}

#[device]
fn index(a: Four, i: u32) -> u32 {
    a.x[i]
}

#[device]
fn text(a: u32) -> u32 {
    "one"
}

fn main() {}
