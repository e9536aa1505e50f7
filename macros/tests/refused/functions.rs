use oclprim_macros::device;

#[device(inline)]
fn with_arguments(a: u32) -> u32 {
    a
}

#[device]
fn without_result(a: u32) {}

#[device]
fn of_any_type<T>(a: T) -> T {
    a
}

#[device]
unsafe fn not_safe(a: u32) -> u32 {
    a
}

#[device]
fn with_pattern(Pair(a, b): Pair) -> u32 {
    a + b
}

#[device]
fn factorial(n: u32) -> u32 {
    if n < 2 { 1 } else { n * factorial(n - 1) }
}

#[device]
fn with_condition(a: u32) -> u32 {
    #[cfg(debug_assertions)]
    {
        return 1;
    }
    a
}

#[device]
fn with_function(a: u32) -> u32 {
    fn twice(x: u32) -> u32 {
        2 * x
    }
    twice(a)
}

fn main() {}
