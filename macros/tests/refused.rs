//! Code outside the subset does not compile: the message points at it, and says what to write.

#[test]
fn messages_point_at_the_code_and_say_what_to_write() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
