//! The timeout of a connection's requests, at almost no cost for those that get a response.
//!
//! A timer per request would be set and cancelled tens of thousands of times per second. Here the
//! timer is set once, and again only when it fires. By then the request that it was set for usually
//! has its response, and the timer moves on to the deadline of the current request.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use tokio::time::{Instant, Sleep, sleep_until};

/// A timer that never fires later than the deadline of the current request.
#[derive(Debug)]
pub(crate) struct Deadline(Pin<Box<Sleep>>);

impl Deadline {
    /// Creates the timer. Each deadline must be no earlier than the previous one.
    pub(crate) fn new(first: Instant) -> Deadline {
        Deadline(Box::pin(sleep_until(first)))
    }

    /// The result of the future; `None` if it is not ready by the deadline.
    pub(crate) async fn until<T>(
        &mut self,
        deadline: Instant,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let timer = &mut self.0;
        let mut future = pin!(future);
        poll_fn(|context| {
            if let Poll::Ready(value) = future.as_mut().poll(context) {
                return Poll::Ready(Some(value));
            }
            while timer.as_mut().poll(context).is_ready() {
                if timer.deadline() >= deadline {
                    return Poll::Ready(None);
                }
                timer.as_mut().reset(deadline);
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::Deadline;
    use std::future::{pending, ready};
    use std::time::Duration;
    use tokio::time::{Instant, sleep};

    const STEP: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn timer_moves_on_to_deadline_of_next_request() {
        let start = Instant::now();
        let mut deadline = Deadline::new(start + STEP);
        assert_eq!(deadline.until(start + STEP, ready(1)).await, Some(1));
        // The first deadline passes here, but is not that of this request.
        let slow = async {
            sleep(STEP * 3).await;
            2
        };
        assert_eq!(deadline.until(start + STEP * 1000, slow).await, Some(2));
        assert_eq!(deadline.until(start + STEP * 1001, ready(3)).await, Some(3));
    }

    #[tokio::test]
    async fn request_ends_no_earlier_than_its_deadline() {
        let start = Instant::now();
        let mut deadline = Deadline::new(start + STEP);
        for steps in [2, 3] {
            let given = deadline.until(start + STEP * steps, pending::<()>()).await;
            assert_eq!(given, None);
            assert!(start.elapsed() >= STEP * steps);
        }
    }
}
