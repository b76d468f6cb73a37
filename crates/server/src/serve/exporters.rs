//! Settings → exporters of requests, and the listener for requests of other machines.

use crate::convert::host_name;
use crate::handover::predecessor::Predecessor;
use anyhow::{Context, Result};
use samovar_config::{LogFormat, LogTarget, Otlp, OtlpHistograms, Settings};
use samovar_front::{log_in_words, log_target_of};
use samovar_insight::export::otlp::{Exporter, HistogramForm, Identity, JobSpans, OtlpOptions};
use samovar_insight::pinba::Sender;
use samovar_insight::pinba::listener::{PinbaIn, PinbaInOptions};
use samovar_insight::pinba::sender::{PinbaOut, PinbaOutOptions};
use samovar_insight::slow_log::{Form, SlowLog, SlowLogOptions};
use samovar_insight::{Releases, Sink};
use samovar_log::{Log, Notice};
use std::time::Duration;

/// Maximum time that the server's stop waits for the slow log's disk or reader.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// Returns whether there is an exporter or a listener.
pub(super) fn are_any(settings: &Settings) -> bool {
    let of = &settings.insight;
    of.slow_log != LogTarget::Off
        || of.otlp.endpoint.is_some()
        || of.pinba.is_some()
        || of.pinba_listen.is_some()
}

/// Binds the socket for other machines' packets, while the server still has the rights to bind.
pub(super) fn bind(
    settings: &Settings,
    predecessor: Option<&Predecessor>,
) -> Result<Option<PinbaIn>> {
    let Some(listen) = settings.insight.pinba_listen.as_ref().filter(|_| settings.insight.enabled)
    else {
        return Ok(None);
    };
    let address = listen.to_string();
    let options = PinbaInOptions::new(&address);
    let handed = predecessor.and_then(|it| Some((it.pinba(listen)?, it.gone_quiet())));
    let bound = match handed {
        Some((socket, turn)) => PinbaIn::take(socket, &options, turn),
        None => PinbaIn::bind(&options),
    };
    let bound = bound.with_context(|| {
        format!("cannot receive packets on `insight.pinba_listen` = `{address}` (UDP)")
    })?;
    tracing::info!(address = %bound.address()?, "receiving packets of other machines");
    Ok(Some(bound))
}

/// Open exporters.
#[derive(Default)]
pub(super) struct Ways {
    pub(super) sinks: Vec<Box<dyn Sink>>,
    pub(super) slow_log: SlowLogFile,
    /// Present with a collector.
    pub(super) job_spans: Option<JobSpans>,
}

/// The slow log's writer, for reopening and flushing its file.
#[derive(Clone, Default)]
pub(super) struct SlowLogFile(pub(super) Option<Log>);

impl SlowLogFile {
    /// Makes the next line open the file again, for a file that was moved away.
    pub(super) fn reopen(&self) {
        if let Some(log) = &self.0 {
            log.reopen();
        }
    }

    /// Writes the queued lines within a limit, for the server's stop.
    pub(super) fn finish(&self) {
        if let Some(log) = &self.0 {
            log.flush(FLUSH_LIMIT);
        }
    }

    /// Returns the number of lines lost since the start.
    pub(super) fn lost(&self) -> u64 {
        self.0.as_ref().map_or(0, Log::lost)
    }
}

/// Opens all exporters.
pub(super) fn open(settings: &Settings, releases: &Releases) -> Result<Ways> {
    let of = &settings.insight;
    let mut ways = Ways { slow_log: open_slow_log(&of.slow_log)?, ..Ways::default() };
    if let Some(log) = ways.slow_log.0.clone() {
        let write = move |line: &str| {
            log.put(format!("{line}\n"));
        };
        let options = SlowLogOptions {
            slow_ns: u64::try_from(of.slow_request.as_nanos()).unwrap_or(u64::MAX),
            form: match of.slow_log_format {
                LogFormat::Text => Form::Text,
                LogFormat::Json => Form::Json,
            },
            per_second_max: u32::try_from(of.slow_log_per_second).unwrap_or(u32::MAX),
            write: Box::new(write),
        };
        ways.sinks.push(Box::new(SlowLog::new(options)));
    }
    if let Some((endpoint, mut options)) = otlp(settings) {
        options.identity.releases = releases.clone();
        let exporter = Exporter::start(options);
        let exporter = exporter.with_context(|| format!("`insight.otlp` = `{endpoint}`"))?;
        ways.job_spans = Some(exporter.job_spans());
        ways.sinks.push(Box::new(exporter));
    }
    if let Some(server) = &of.pinba {
        let sender = Sender { host: host_name(), server: of.service.clone() };
        let out = PinbaOut::start(PinbaOutOptions { server: server.clone(), sender });
        let out = out.with_context(|| format!("cannot send to `insight.pinba` = `{server}`"))?;
        ways.sinks.push(Box::new(out));
    }
    Ok(ways)
}

/// Returns the collector's URL and the exporter's options; `None` if no collector is configured.
pub(crate) fn otlp(settings: &Settings) -> Option<(&str, OtlpOptions)> {
    let of = &settings.insight;
    let endpoint = of.otlp.endpoint.as_deref()?;
    let identity = Identity {
        service: of.service.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: host_name(),
        releases: Releases::default(),
    };
    Some((endpoint, otlp_options(endpoint, &of.otlp, identity)))
}

fn otlp_options(endpoint: &str, of: &Otlp, identity: Identity) -> OtlpOptions {
    let trouble = Box::new(|trouble: &str| tracing::warn!("{trouble}"));
    OtlpOptions {
        headers: of
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.expose().to_owned()))
            .collect(),
        timeout: of.timeout,
        every: of.interval,
        figures_every: Some(of.metrics_interval).filter(|every| !every.is_zero()),
        histograms: match of.histograms {
            OtlpHistograms::Explicit => HistogramForm::Explicit,
            OtlpHistograms::Exponential => HistogramForm::Exponential,
        },
        bytes_max: usize::try_from(of.bytes_max).unwrap_or(usize::MAX),
        roots: of.ca_file.clone(),
        ..OtlpOptions::new(endpoint, identity, trouble)
    }
}

fn open_slow_log(setting: &LogTarget) -> Result<SlowLogFile> {
    let Some(target) = log_target_of(setting, "samovar-slow") else { return Ok(SlowLogFile(None)) };
    let name = log_in_words("slow log", setting);
    let told = name.clone();
    let notice = Notice::Elsewhere(Box::new(move |trouble| tracing::warn!("{told}: {trouble}")));
    let log = Log::start("slow-log", target, notice);
    Ok(SlowLogFile(Some(log.with_context(|| format!("cannot write the {name}"))?)))
}
