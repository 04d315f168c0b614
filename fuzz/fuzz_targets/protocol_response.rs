#![no_main]

#[allow(dead_code)]
#[path = "../../crates/interop/tests/parsers/bodies.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::protocol_response(data));
