//! A worker may write anything anywhere into the shared memory: the front stays whole.
#![cfg(not(loom))]

#[path = "hostile/scribble.rs"]
mod scribble;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(2000)))]
    #[test]
    fn the_front_survives_scribbling(program in prop::collection::vec(any::<u8>(), 0..400)) {
        scribble::run(&program);
    }
}
