//! A profile as a small document, for storage and for the way from the server to a command.
//!
//! Stacks are sorted, and each contains only its difference from the previous one: neighbours share
//! most of their calls.

use super::stacks::{Call, DEPTH_MAX, FUNCTIONS_MAX, Profile, STACKS_MAX, Weight};
use crate::stack::Function;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Maximum number of calls of one stack: no packed stack has more.
const CALLS_MAX: usize = DEPTH_MAX + 2;

/// The document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Packed {
    /// Class, name, file and line of each function.
    functions: Vec<(String, String, String, u32)>,
    stacks: Vec<PackedStack>,
}

/// Number of calls shared with the previous stack; function and line of the other calls,
/// alternating; samples, wall ns, CPU ns.
type PackedStack = (u32, Vec<u32>, u64, u64, u64);

/// Packs the profile, with at most `stacks_max` of its stacks: the heaviest ones.
pub fn pack(profile: &Profile, stacks_max: usize) -> Packed {
    let mut stacks = profile.stacks();
    if stacks.len() > stacks_max {
        stacks.sort_by_key(|(_, weight)| std::cmp::Reverse((weight.samples, weight.wall_ns)));
        stacks.truncate(stacks_max);
        stacks.sort_unstable_by_key(|(calls, _)| *calls);
    }
    // Functions that occur only in omitted stacks are omitted, too.
    let mut numbers = vec![None; profile.functions().len()];
    let mut packed = Packed::default();
    let mut before: &[Call] = &[];
    for (calls, weight) in stacks {
        let shared = calls.iter().zip(before).take_while(|(a, b)| a == b).count();
        let mut rest = Vec::with_capacity((calls.len() - shared) * 2);
        for call in &calls[shared..] {
            let number = *numbers[call.function as usize].get_or_insert_with(|| {
                let function = profile.function(*call);
                let Function { class, name, file, line } = function.clone();
                packed.functions.push((class, name, file, line));
                packed.functions.len() as u32 - 1
            });
            rest.extend([number, call.line]);
        }
        let Weight { samples, wall_ns, cpu_ns } = weight;
        packed.stacks.push((shared as u32, rest, samples, wall_ns, cpu_ns));
        before = calls;
    }
    packed
}

/// Unpacks a profile; `None` if the document is invalid.
pub fn unpack(packed: Packed) -> Option<Profile> {
    if packed.functions.len() > FUNCTIONS_MAX + 1 || packed.stacks.len() > STACKS_MAX + 1 {
        return None;
    }
    let mut profile = Profile::new();
    let function = |(class, name, file, line)| Arc::new(Function { class, name, file, line });
    let functions: Vec<_> = packed.functions.into_iter().map(function).collect();
    let numbers: Vec<u32> = functions.iter().map(|f| profile.call(f, 0).function).collect();
    let mut key: Vec<Call> = Vec::new();
    for (shared, rest, samples, wall_ns, cpu_ns) in packed.stacks {
        if shared as usize > key.len() || shared as usize + rest.len() / 2 > CALLS_MAX {
            return None;
        }
        key.truncate(shared as usize);
        for pair in rest.chunks(2) {
            let [function, line] = *pair else { return None };
            key.push(Call { function: *numbers.get(function as usize)?, line });
        }
        let weight = Weight { samples, wall_ns, cpu_ns };
        profile.total.add(weight);
        profile.put(&mut key.clone(), weight, STACKS_MAX);
    }
    Some(profile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::Activity;
    use crate::stack::Frame;

    fn profile(stacks: &[(&[&str], u64)]) -> Profile {
        let mut profile = Profile::new();
        for (names, samples) in stacks {
            let frame = |name: &&str| {
                let function = Function { name: (*name).to_owned(), ..Function::default() };
                Frame { function: Arc::new(function), line: 3 }
            };
            let frames: Vec<_> = names.iter().rev().map(frame).collect();
            let weight = Weight { samples: *samples, wall_ns: samples * 10, cpu_ns: *samples };
            profile.add(&frames, &Activity::Running, weight);
        }
        profile
    }

    fn told(profile: &Profile) -> Vec<(Vec<String>, Weight)> {
        let mut all: Vec<_> = profile
            .stacks()
            .into_iter()
            .map(|(calls, w)| (calls.iter().map(|c| profile.function(*c).label()).collect(), w))
            .collect();
        all.sort_by(|a: &(Vec<String>, _), b| a.0.cmp(&b.0));
        all
    }

    #[test]
    fn packed_profile_unpacks_unchanged() {
        let whole = profile(&[
            (&["main", "a", "b"], 5),
            (&["main", "a", "c"], 3),
            (&["main"], 1),
            (&["other", "a"], 2),
        ]);
        let text = serde_json::to_string(&pack(&whole, 100)).expect("numbers and texts");
        let again = unpack(serde_json::from_str(&text).expect("as it was written"));
        let again = again.expect("a profile");
        assert_eq!(told(&again), told(&whole));
        assert_eq!(again.total(), whole.total());
        let heaviest = unpack(pack(&whole, 2)).expect("a profile");
        assert_eq!(heaviest.total().samples, 8);
        assert_eq!(heaviest.functions().len(), 4);
    }

    #[test]
    fn merged_profiles_are_summed_and_bounded() {
        let mut sum = profile(&[(&["main", "a"], 1)]);
        sum.merge(&profile(&[(&["main", "a"], 2), (&["main", "b"], 4)]), 2);
        sum.merge(&profile(&[(&["main", "c"], 8)]), 2);
        assert_eq!(sum.total().samples, 15);
        let left_out = (vec![crate::profile::stacks::LEFT_OUT.to_owned()], 8);
        let all: Vec<_> = told(&sum).into_iter().map(|(s, w)| (s, w.samples)).collect();
        assert!(all.contains(&left_out) && all.len() == 3, "{all:?}");
    }

    #[test]
    fn arbitrary_documents_do_not_panic() {
        for text in [
            r#"{"functions":[],"stacks":[[0,[0,1],1,1,1]]}"#,
            r#"{"functions":[["","a","",0]],"stacks":[[1,[0,1],1,1,1]]}"#,
            r#"{"functions":[["","a","",0]],"stacks":[[0,[0],1,1,1]]}"#,
        ] {
            let packed: Packed = serde_json::from_str(text).expect("the shape is right");
            assert!(unpack(packed).is_none(), "{text}");
        }
    }
}
