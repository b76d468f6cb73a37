//! A worker may write any bytes anywhere into the shared memory: the front must survive.
#![cfg(not(loom))]

#[path = "hostile/scribble.rs"]
mod scribble;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(2000)))]
    #[test]
    fn front_survives_garbage_in_ring(program in prop::collection::vec(any::<u8>(), 0..400)) {
        scribble::run(&program);
    }
}
