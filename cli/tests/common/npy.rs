//! The program's reader of .npy files, and properties that hold for any bytes.
#![allow(dead_code, reason = "the program uses functions that no test uses")]

#[path = "../../src/npy/mod.rs"]
pub(crate) mod npy;

use std::time::{Duration, Instant};

use npy::{Array, Made};

/// Reads bytes as a file of known length and as a stream; returns the array, or the reason why it is invalid.
///
/// # Panics
///
/// Panics if the two results differ, an error is not one short line, reading takes long, or writing changes the array.
pub(crate) fn check(bytes: &[u8]) -> Result<Array, String> {
    let start = Instant::now();
    let file = Array::read(&mut &bytes[..], Some(bytes.len() as u64));
    let stream = Array::read(&mut &bytes[..], None);
    assert!(start.elapsed() < Duration::from_secs(1), "{} bytes took {:?}", bytes.len(), start.elapsed());
    match (&file, &stream) {
        (Ok(file), Ok(stream)) => {
            assert_eq!((&file.shape, file.type_name()), (&stream.shape, stream.type_name()));
            assert_eq!(file.elements::<u8>(), stream.elements::<u8>());
            let written = bytes_of(&file.like(&file.shape, file.elements::<u8>()));
            let again = Array::read(&mut &written[..], Some(written.len() as u64)).expect("what was written");
            assert_eq!((&file.shape, file.type_name()), (&again.shape, again.type_name()));
            assert_eq!(file.elements::<u8>(), again.elements::<u8>());
        }
        (Err(file), Err(stream)) => {
            for text in [file, stream] {
                assert!(!text.is_empty() && text.len() < 2000 && !text.contains(['\n', '\r', '\x1b']), "{text:?}");
            }
        }
        _ => panic!("as a file {:?}, as a stream {:?}", file.map(|_| "read"), stream.map(|_| "read")),
    }
    file
}

/// The bytes of a whole file.
pub(crate) fn bytes_of(made: &Made<'_>) -> Vec<u8> {
    made.parts().concat()
}
