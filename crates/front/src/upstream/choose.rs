//! submit: which of several php-fpms gets a request. Pure.
//!
//! The one with the fewest requests, and in turn where they have equally many. Who could not be reached is passed over for a
//! while, unless all could not.

/// One of them as a request finds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Requests that it has.
    pub(super) used: usize,
    /// It may have another one.
    pub(super) has_room: bool,
    /// It could not be reached a short while ago.
    pub(super) is_down: bool,
}

/// Whose turn it is, `turn` being any number that grows. `None`: who might be asked has no room.
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
    fn who_is_asked() {
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
            // It is waited for: who is down stays passed over.
            (&[down, full], 0, None),
            (&[down, down], 1, Some(1)),
        ] {
            assert_eq!(choose(candidates, turn), expected, "{candidates:?} {turn}");
        }
    }
}
