//! An event of `tracing` → a line of the log.

use samovar_log::{Detail, Format, Line};
use std::fmt::{self, Debug};
use std::time::SystemTime;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Formats events like all other lines of the log.
pub(super) struct Lines(pub(super) Format);

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut to: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut said = Said::default();
        event.record(&mut said);
        let pool = samovar_log::pool::current().map(|name| ("pool", Detail::Quoted(name)));
        said.details.extend(pool);
        let line = Line {
            at: SystemTime::now(),
            level: Some(&event.metadata().level().as_str().to_ascii_lowercase()),
            target: event.metadata().target(),
            process: None,
            message: &said.message,
            details: &said.details,
            context: "",
        };
        to.write_str(&line.render(self.0))
    }
}

#[derive(Default)]
struct Said {
    message: String,
    details: Vec<(&'static str, Detail)>,
}

impl Said {
    fn take(&mut self, field: &Field, detail: Detail) {
        match (field.name(), detail) {
            ("message", Detail::Quoted(text) | Detail::Plain(text)) => self.message = text,
            (name, detail) => self.details.push((name, detail)),
        }
    }
}

impl Visit for Said {
    /// Receives messages, and values given with `%` or `?`.
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.take(field, Detail::Plain(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, Detail::Quoted(value.to_owned()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.take(field, Detail::Value(value.into()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.take(field, Detail::Value(value.into()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.take(field, Detail::Value(value.into()));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.take(field, Detail::Value(value.into()));
    }
}
