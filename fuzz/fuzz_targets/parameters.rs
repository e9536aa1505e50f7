#![no_main]

#[path = "../entries/parameters.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
