//! Traits that the public types promise.

use std::fmt::Debug;

use oclprim_checks::{bench::Sample, check::Case};

fn is_shared<T: Send + Sync + Debug>() {}
fn is_sent<T: Send>() {}

#[test]
fn samples_are_shareable_and_cases_are_send() {
    is_shared::<Sample>();
    is_sent::<Case>();
}
