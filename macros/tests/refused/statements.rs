use oclprim_macros::device;

#[device]
fn pattern(a: Pair) -> u32 {
    let Pair { x, y } = a;
    x + y
}

#[device]
fn let_else(a: u32) -> u32 {
    let x = a else { return 1 };
    x
}

#[device]
fn label(a: u32) -> u32 {
    'outer: for i in 0..a {
        for j in 0..a {
            if i * j > 9 {
                break 'outer;
            }
        }
    }
    a
}

#[device]
fn iterator(a: Four) -> u32 {
    let mut sum: u32 = 0;
    for x in a.x.iter() {
        sum += x;
    }
    sum
}

#[device]
fn constant(a: u32) -> u32 {
    const LIMIT: u32 = 4;
    a.min(LIMIT)
}

#[device]
fn message(a: u32) -> u32 {
    println!("{a}");
    a
}

#[device]
fn index_with_effects(a: Four) -> Four {
    let mut b = a;
    b.x[{
        b.n += 1;
        0usize
    }] = 2;
    b
}

fn main() {}
