//! The second stage: what was typed for one setting, laid over its default and checked.

use crate::problem::Problem;
use crate::schema::setting::{Kind, Preset, Setting, Shape, Surroundings};
use crate::schema::settings::Settings;
use crate::sources::typed::Typed;

/// Lays `setting`'s values over each other, weakest first; returns what is wrong with them.
///
/// Values that a stronger source replaces are read all the same: a mistake in the file should not
/// wait for the day on which the flag is left out.
pub(crate) fn lay(
    setting: &'static Setting,
    typed: &[Typed],
    settings: &mut Settings,
    around: &Surroundings<'_>,
) -> Vec<Problem> {
    if let Preset::Text(text) = setting.default {
        let read = setting.kind.set(settings, text, around.cwd);
        debug_assert!(read.is_some(), "the default of {} is not allowed", setting.key);
    }
    let given: Vec<&Typed> =
        typed.iter().filter(|typed| std::ptr::eq(typed.setting, setting)).collect();
    let mut problems = Vec::new();
    let mut layer = None;
    for typed in &given {
        if let Kind::List { clear, .. } = setting.kind
            && layer.replace(typed.layer()) != Some(typed.layer())
        {
            clear(settings);
        }
        problems.extend(read(typed, settings));
    }
    if problems.is_empty() {
        let around = Surroundings { is_given: !given.is_empty(), ..*around };
        problems.extend(finish(setting, given.last().copied(), settings, &around));
    }
    problems
}

fn read(typed: &Typed, settings: &mut Settings) -> Option<Problem> {
    let kind = &typed.setting.kind;
    let allowed = kind.takes(typed.shape)
        && (typed.shape == Shape::Empty || kind.set(settings, &typed.text, &typed.base).is_some());
    (!allowed).then(|| typed.refused())
}

fn finish(
    setting: &'static Setting,
    winner: Option<&Typed>,
    settings: &mut Settings,
    around: &Surroundings<'_>,
) -> Option<Problem> {
    let (what, hint) = (setting.finish?)(settings, around).err()?;
    Some(match winner {
        Some(typed) => typed.problem(&what, hint),
        None => Problem::new(format!("the default of `{}` {what}", setting.key), hint),
    })
}
