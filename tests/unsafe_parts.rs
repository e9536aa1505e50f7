//! The unsafe code behind the CPU backend, and the lock-free order of its tasks, in parts that Miri runs in seconds:
//! `scripts/undefined-behaviour` does.

// Private modules with their own tests. Compiled here they need no other module of the crate.
#[allow(dead_code, unreachable_pub, reason = "their users are in the crate")]
#[path = "../src/runtime/lines.rs"]
mod lines;
#[allow(dead_code, reason = "their users are in the crate")]
#[path = "../src/parallel.rs"]
mod parallel;

use oclprim::Device;

#[test]
fn mapped_buffers_are_their_elements() {
    let device = Device::cpu();
    for n in [0usize, 1, 5] {
        let mut buffer = device.upload(&(0..n as u16).collect::<Vec<_>>()).expect("memory");
        let mut mapped = buffer.map_mut().expect("the CPU maps its memory");
        mapped.iter_mut().for_each(|x| *x += 7);
        drop(mapped);
        assert_eq!(*buffer.map().expect("the CPU maps its memory"), (7..n as u16 + 7).collect::<Vec<_>>());
    }
}
