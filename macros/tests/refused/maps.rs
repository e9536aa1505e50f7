use oclprim_macros::map;

const LIMIT: f32 = 2.0;

fn main() {
    let scale = 3.0f32;
    let captured = map!(|x: f32| x * scale);
    let constant = map!(|x: f32| x.min(LIMIT));
    let moved = map!(move |x: f32| x * scale);
    let flag = true;
    let of_bool = map!(move |x: f32| -> f32 { if flag { x } else { -x } }, flag: bool);
    let of_two = map!(|x: f32, y: f32| x * y);
    let without_type = map!(|x| x + 1.0);
    let whole_tuple = map!(|pair: (f32, f32)| 1.0f32);
    let early = map!(|x: f32| {
        if x < 0.0 {
            return 0.0;
        }
        x
    });
}
