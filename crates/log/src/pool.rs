//! The pool that a thread works for. With several pools, log lines name it.

use std::cell::RefCell;

thread_local! {
    static CURRENT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Guard: until it is dropped, the lines logged by this thread belong to that pool.
#[derive(Debug)]
pub struct Named(Option<String>);

/// Assigns the following lines of this thread to the pool with this name; empty: to no pool.
#[must_use]
pub fn enter(name: &str) -> Named {
    let is_current = CURRENT.with_borrow(|current| current == name);
    Named((!is_current).then(|| CURRENT.replace(name.to_owned())))
}

impl Drop for Named {
    fn drop(&mut self) {
        if let Some(before) = self.0.take() {
            CURRENT.set(before);
        }
    }
}

/// Returns the pool that this thread works for, if there is one.
pub fn current() -> Option<String> {
    CURRENT.with_borrow(|current| (!current.is_empty()).then(|| current.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_name_reverts_at_end_of_scope() {
        assert_eq!(current(), None);
        let outer = enter("api");
        {
            let _inner = enter("shop");
            assert_eq!(current().as_deref(), Some("shop"));
            let _again = enter("shop");
        }
        assert_eq!(current().as_deref(), Some("api"));
        drop(outer);
        assert_eq!(current(), None);
    }
}
