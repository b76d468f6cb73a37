//! A flag for threads that run until the end of a test.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets the flag when it is dropped, also by a failed assertion: the scope of the threads waits for
/// them, so the test would hang otherwise.
#[derive(Debug)]
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
