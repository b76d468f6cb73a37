//! submit: selects one of several php-fpm servers for a request. Pure.
//!
//! The server with the fewest requests is selected; servers with equally many take turns. A server
//! that could not be reached is skipped for a while, unless no server could be reached.

/// State of one server at the time of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Number of its current requests.
    pub(super) used: usize,
    /// Whether it may get another one.
    pub(super) has_room: bool,
    /// Whether it could not be reached recently.
    pub(super) is_down: bool,
}

/// Returns the index of the selected server; `turn` is any number that grows. `None` if no server
/// that may be used has room.
pub(super) fn choose(candidates: &[Candidate], turn: usize) -> Option<usize> {
    let are_down = candidates.iter().all(|c| c.is_down);
    let count = candidates.len().max(1);
    let in_turn = (0..candidates.len()).map(|at| (at + turn) % count);
    in_turn
        .filter(|at| {
            let one = &candidates[*at];
            one.has_room && (are_down || !one.is_down)
        })
        .min_by_key(|at| candidates[*at].used)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Candidate = Candidate { used: 0, has_room: true, is_down: false };

    fn busy(used: usize) -> Candidate {
        Candidate { used, ..FREE }
    }

    #[test]
    fn reachable_server_with_fewest_requests_is_chosen() {
        let full = Candidate { has_room: false, ..busy(9) };
        let down = Candidate { is_down: true, ..FREE };
        for (candidates, turn, expected) in [
            (&[][..], 0, None),
            (&[FREE], 7, Some(0)),
            (&[FREE, FREE, FREE], 0, Some(0)),
            (&[FREE, FREE, FREE], 1, Some(1)),
            (&[FREE, FREE, FREE], 5, Some(2)),
            (&[busy(2), busy(1), busy(3)], 2, Some(1)),
            (&[busy(1), busy(1), busy(3)], 1, Some(1)),
            (&[busy(1), busy(1), busy(3)], 2, Some(0)),
            (&[full, busy(3)], 0, Some(1)),
            (&[full, full], 0, None),
            (&[down, busy(3)], 0, Some(1)),
            // The request waits for the full server: a server that is down is still skipped.
            (&[down, full], 0, None),
            (&[down, down], 1, Some(1)),
        ] {
            assert_eq!(choose(candidates, turn), expected, "{candidates:?} {turn}");
        }
    }
}
