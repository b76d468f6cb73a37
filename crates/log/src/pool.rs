//! Whose business a thread is about, where a server has several pools: lines of the log name it.

use std::cell::RefCell;

thread_local! {
    static CURRENT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Until it is dropped, what this thread says is about that pool.
#[derive(Debug)]
pub struct Named(Option<String>);

/// What this thread says from here on is about the pool of that name; empty: about none.
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

/// The pool that this thread is about, if there is one.
pub fn current() -> Option<String> {
    CURRENT.with_borrow(|current| (!current.is_empty()).then(|| current.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_with_their_scope() {
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
