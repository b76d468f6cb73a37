//! The jobs that a command is about: parts of limited size.

use crate::command::{Chosen, Cursor};
use crate::store::{Catalogue, Listed, Page, Stage, StoreError};
use samovar_wire::DeadJob;

/// Maximum number of jobs that one command shows or changes. The operator's program repeats it.
const COMMAND_JOBS_MAX: usize = 1_000;
/// Maximum bytes of the jobs that one command shows. The first job may have more.
pub(crate) const SHOWN_BYTES_MAX: usize = 1 << 20;

/// Returns the part of the jobs that the next command is about.
fn page(of: &mut (impl Catalogue + ?Sized), stage: Stage, chosen: &Chosen) -> Result<Page, String> {
    let until = match chosen.until {
        0 => of.last(stage).map_err(|error| error.to_string())?,
        until => until,
    };
    let max = if chosen.limit == 0 { COMMAND_JOBS_MAX } else { chosen.limit };
    let max = max.min(COMMAND_JOBS_MAX);
    Ok(Page { after: chosen.after, until, max, bytes_max: SHOWN_BYTES_MAX })
}

/// Returns dead jobs.
pub(crate) fn dead(
    of: &mut (impl Catalogue + ?Sized),
    chosen: &Chosen,
) -> Result<(Vec<DeadJob>, Cursor), String> {
    let page = page(of, Stage::Dead, chosen)?;
    let failed = |error: StoreError| error.to_string();
    if !chosen.ids.is_empty() {
        let mut jobs = Vec::new();
        let mut bytes = 0;
        for id in chosen.ids.iter().take(page.max) {
            let one = Page { after: id.saturating_sub(1), until: *id, max: 1, ..page };
            jobs.extend(of.dead(&chosen.queue, &one).map_err(failed)?);
            bytes += jobs.last().map_or(0, |job| job.payload.len() + job.error.len());
            if bytes > SHOWN_BYTES_MAX {
                break;
            }
        }
        return Ok((jobs, Cursor::default()));
    }
    let jobs = of.dead(&chosen.queue, &page).map_err(failed)?;
    let last = jobs.last().map_or(0, |job| job.id);
    let rest = Page { after: last, max: 1, ..page };
    let has_more =
        last > 0 && !of.ids(Stage::Dead, &chosen.queue, &rest).map_err(failed)?.is_empty();
    Ok((jobs, Cursor { next: if has_more { last } else { 0 }, until: page.until }))
}

/// Returns the jobs that the command changes.
pub(crate) fn chosen(
    of: &mut (impl Catalogue + ?Sized),
    stage: Stage,
    chosen: &Chosen,
) -> Result<(Vec<Listed>, Cursor), String> {
    let page = page(of, stage, chosen)?;
    let mut ids_of =
        |page: &Page| of.ids(stage, &chosen.queue, page).map_err(|error| error.to_string());
    if chosen.ids.is_empty() {
        let found = ids_of(&page)?;
        let is_full = found.len() == page.max;
        let next = found.last().filter(|_| is_full).map_or(0, |job| job.id);
        return Ok((found, Cursor { next, until: page.until }));
    }
    let mut ids = chosen.ids.clone();
    ids.sort_unstable();
    ids.dedup();
    let is_next = |id: &i64| *id > page.after && *id <= page.until;
    let ids: Vec<i64> = ids.into_iter().filter(is_next).take(page.max).collect();
    let next = ids.last().filter(|_| ids.len() == page.max).copied().unwrap_or(0);
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        found.extend(ids_of(&Page { after: id.saturating_sub(1), until: id, max: 1, ..page })?);
    }
    Ok((found, Cursor { next, until: page.until }))
}
