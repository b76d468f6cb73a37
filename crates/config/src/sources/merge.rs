//! The second stage: applies the typed values of one setting over its default, and checks them.

use crate::problem::Problem;
use crate::schema::setting::{Kind, Preset, Setting, Shape, Surroundings};
use crate::schema::settings::Settings;
use crate::sources::typed_value::Typed;

/// Applies `setting`'s values, weakest first, and returns the mistakes.
///
/// Values that a stronger source replaces are checked too: a mistake in the file must not stay
/// hidden until the flag is removed.
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
    let (wrong, hint) = (setting.finish?)(settings, around).err()?;
    Some(match winner {
        Some(typed) => typed.problem(&wrong, hint),
        None => Problem::new(format!("the default of `{}` {wrong}", setting.key), hint),
    })
}
