//! The selected part of the server's response.

use super::options::ProfileOptions;
use crate::control_client;
use anyhow::{Context, Result, anyhow};
use samovar_spy::profile::svg::Measure;
use samovar_spy::profile::{Part, Profile, packed};
use samovar_wire::{Against, ProfileResponse, ProfileSide};

/// Selected part of the profile of one period.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) generations: Vec<u64>,
    pub(super) requests: u64,
    pub(super) profile: Profile,
}

/// Data to show.
#[derive(Debug)]
pub(super) struct Shown {
    /// Title: `all routes` or the route's name, and the pool if the command selects one.
    pub(super) what: String,
    pub(super) measure: Measure,
    pub(super) hertz: u32,
    pub(super) now: Side,
    pub(super) before: Option<Side>,
    pub(super) is_cut: bool,
}

impl Side {
    fn of(side: ProfileSide, asked: &ProfileOptions) -> Result<Side> {
        let packed: packed::Packed =
            serde_json::from_value(side.profile).context("cannot parse the server's response")?;
        let whole =
            packed::unpack(packed).ok_or_else(|| anyhow!("cannot parse the server's response"))?;
        let profile = whole.part(asked.part);
        Ok(Side {
            from: side.from,
            to: side.to,
            generations: side.generations,
            requests: side.requests,
            profile: if asked.lines { profile.by_line() } else { profile },
        })
    }
}

impl Shown {
    pub(super) fn of(asked: &ProfileOptions, response: &ProfileResponse) -> Result<Shown> {
        let part = match asked.part {
            Part::All => "",
            Part::OnCpu => ", on CPU",
            Part::Waiting => ", waiting",
        };
        let of_pool = match control_client::printable(&response.pool) {
            none if none.is_empty() => none,
            pool => format!(" of pool {pool}"),
        };
        let before = response.before.clone();
        let is_cut = response.now.is_cut || before.as_ref().is_some_and(|side| side.is_cut);
        Ok(Shown {
            what: format!("{}{of_pool}{part}", asked.route.as_deref().unwrap_or("all routes")),
            measure: if asked.part == Part::OnCpu { Measure::Cpu } else { Measure::Wall },
            hertz: response.hertz,
            now: Side::of(response.now.clone(), asked)?,
            before: before.map(|side| Side::of(side, asked)).transpose()?,
            is_cut,
        })
    }
}

/// Returns the description of a comparison.
pub(super) fn against_words(against: Against) -> String {
    match against {
        Against::Reload => "before the last reload".to_owned(),
        Against::Generation { number } => format!("generation {number}"),
        Against::Earlier { seconds } if seconds.is_multiple_of(86_400) => {
            format!("{} d earlier", seconds / 86_400)
        }
        Against::Earlier { seconds } if seconds.is_multiple_of(3_600) => {
            format!("{} h earlier", seconds / 3_600)
        }
        Against::Earlier { seconds } => format!("{} min earlier", seconds.div_ceil(60)),
    }
}
