//! RoadRunner's `.rr.yaml` → draft.

use super::draft::{Block, Draft, Kind, Value};
use super::input::FromError;
use super::origin::Origin;
use super::shared::{self, header, is_script, resolved};
use super::units;
use super::yaml::{self, Node, Yaml};
use std::path::Path;

/// Time unit of a number without a unit: RoadRunner's are seconds.
const SECOND: u64 = 1_000;
const MEBIBYTE: u64 = 1 << 20;

/// Keys without a counterpart, by their start, and the advice.
const ADVICE: &[(&str, &str)] = &[
    ("jobs.", "use a [[queue]] of Samovar, or a [[console]] that consumes your broker"),
    ("kv.", "use Samovar\\Cache or Samovar\\Table: docs/guide/shared-memory.md"),
    ("lock", "use Samovar\\Lock, within one server"),
    ("grpc.", "keep RoadRunner for gRPC"),
    ("temporal.", "keep RoadRunner for Temporal"),
    ("tcp.", "keep RoadRunner for TCP servers"),
    ("centrifuge.", "keep RoadRunner for Centrifugo"),
    ("http.uploads.", "check the names of uploaded files in the application"),
    ("http.static.", "files are served with their ETag; see `deny_files` and [[location]]"),
    ("http.cache", "no cache of responses: use a CDN or a proxy"),
    ("http.new_relic", "set `insight.otlp`"),
    ("http.http3", "no HTTP/3: use a proxy or a CDN in front"),
    ("http.ssl.", "set `tls.certificates` and `tls.keys`, or `acme.domains`"),
    ("http.pool.debug", "use `samovar dev` for development"),
    ("http.pool.", "see docs/guide/workers.md"),
    ("reload.", "use `samovar dev` for development"),
    ("otel.", "set `insight.otlp`"),
    ("metrics.collect", "use Samovar\\Counter and Samovar\\timer()"),
    ("fileserver", "use a [[location]] with `alias`"),
    ("server.on_init", "run the command before `samovar serve`"),
    ("server.env", "set it in the environment of `samovar`"),
];

/// Keys that Samovar needs no setting for.
const BUILT_IN: &[&str] = &[
    "version",
    "rpc.",
    "server.relay",
    "http.http2.",
    "logs.channels",
    "logs.line_ending",
    "logs.skip_line_ending",
    "logs.file_logger_options",
    "endure.",
    "server.user_",
    "http.raw_body",
    "http.internal_error_code",
    "http.access_logs",
    "logs.mode",
    "http.pool.stream_timeout",
    "http.pool.supervisor.watch_tick",
    "status.unavailable_status_code",
    "status.shutdown_immediately",
    "server.after_init",
];

pub(crate) fn convert(draft: &mut Draft, file: &Path, text: &str) -> Result<(), FromError> {
    let lines: Vec<&str> = text.lines().collect();
    let Some(document) = yaml::read(file, text)? else {
        return Err(FromError::syntax(file, 1, "the file has no settings", "pass a .rr.yaml"));
    };
    let mut leaves = Vec::new();
    flatten("", &document, &mut leaves);
    let mut reader =
        Reader { file, lines, headers: Block::location(&[], &[], &Origin::new(file, 1, "")) };
    if let Some((_, node)) = leaves.iter().find(|(key, _)| key.starts_with("http.headers.response"))
    {
        reader.headers = Block::location(&[], &[], &reader.origin(node.line));
    }
    workers(draft, &reader, &leaves);
    listeners(draft, &reader, &leaves);
    for (key, node) in &leaves {
        reader.leaf(draft, key, node);
    }
    draft.push(reader.headers);
    Ok(())
}

/// All values that are no mappings, with their dotted keys.
fn flatten<'a>(prefix: &str, node: &'a Node, leaves: &mut Vec<(String, &'a Node)>) {
    match &node.value {
        Yaml::Mapping(pairs) => {
            for (key, _, value) in pairs {
                let separator = if prefix.is_empty() { "" } else { "." };
                flatten(&format!("{prefix}{separator}{key}"), value, leaves);
            }
        }
        Yaml::Sequence(nodes) if nodes.iter().any(|n| matches!(n.value, Yaml::Mapping(_))) => {
            for inner in nodes {
                flatten(prefix, inner, leaves);
            }
        }
        _ => leaves.push((prefix.to_owned(), node)),
    }
}

fn text_of(leaves: &[(String, &Node)], key: &str) -> Option<(String, u32)> {
    let (_, node) = leaves.iter().find(|(name, _)| name == key)?;
    node.texts().into_iter().next()
}

fn workers(draft: &mut Draft, reader: &Reader<'_>, leaves: &[(String, &Node)]) {
    let number = |key: &str| {
        let (text, line) = text_of(leaves, key)?;
        Some((text.parse::<u64>().ok()?, line))
    };
    let Some((min, line)) = number("http.pool.num_workers").filter(|(number, _)| *number > 0)
    else {
        return;
    };
    match number("http.pool.dynamic_allocator.max_workers") {
        Some((more, at)) if more > 0 => {
            draft.set("workers", "min", Value::plain(min), &reader.origin(line));
            draft.set("workers", "max", Value::plain(min + more), &reader.origin(at));
        }
        _ => draft.set("", "workers", Value::plain(min), &reader.origin(line)),
    }
}

fn listeners(draft: &mut Draft, reader: &Reader<'_>, leaves: &[(String, &Node)]) {
    let redirect = text_of(leaves, "http.ssl.redirect").is_some_and(|(text, _)| text == "true");
    let has_tls = leaves.iter().any(|(key, _)| key.starts_with("http.ssl."));
    for (key, scheme) in
        [("http.address", ""), ("http.ssl.address", "https://"), ("http.fcgi.address", "fcgi://")]
    {
        let Some((address, line)) = text_of(leaves, key) else { continue };
        let address = address.trim_start_matches("tcp://").replace("0.0.0.0:", ":");
        let address = match address.strip_prefix("unix://") {
            Some(path) if scheme == "fcgi://" => format!("fcgi-unix:{path}"),
            Some(path) => format!("unix:{path}"),
            None => format!("{scheme}{address}"),
        };
        let suffix = if key == "http.address" && redirect && has_tls { "?redirect" } else { "" };
        draft.add("", "listen", &format!("{address}{suffix}"), &reader.origin(line));
    }
    if has_tls && !leaves.iter().any(|(key, _)| key == "http.ssl.address") {
        let line =
            leaves.iter().find(|(key, _)| key.starts_with("http.ssl.")).map_or(1, |l| l.1.line);
        draft.add("", "listen", "https://:443", &reader.origin(line));
    }
}

struct Reader<'a> {
    file: &'a Path,
    lines: Vec<&'a str>,
    headers: Block,
}

impl Reader<'_> {
    fn origin(&self, line: u32) -> Origin {
        let text = self.lines.get(line.saturating_sub(1) as usize).copied().unwrap_or_default();
        Origin::new(self.file, line, text)
    }

    fn leaf(&mut self, draft: &mut Draft, key: &str, node: &Node) {
        let origin = self.origin(node.line);
        if matches!(node.value, Yaml::Alias) {
            return draft.missing(&origin, "aliases are not followed: repeat the value");
        }
        let texts = node.texts();
        let text = texts.first().map_or("", |(text, _)| text.as_str());
        if text.contains("${") {
            let advice =
                "variables are not replaced: write the value, or set the SAMOVAR_… variable";
            return draft.missing(&origin, advice);
        }
        let time = |draft: &mut Draft, at| shared::time(draft, at, text, SECOND, &origin);
        match key {
            "http.address"
            | "http.fcgi.address"
            | "http.ssl.address"
            | "http.ssl.redirect"
            | "http.pool.num_workers"
            | "http.pool.dynamic_allocator.max_workers" => {}
            "server.command" => self.command(draft, &texts, &origin),
            "server.user" => draft.set("", "user", Value::text(text), &origin),
            "server.group" => draft.set("", "group", Value::text(text), &origin),
            "http.pool.max_jobs" => {
                draft.set("limits", "requests_max", Value::plain(text), &origin);
            }
            "http.pool.allocate_timeout" if units::milliseconds(text, SECOND) != Some(0) => {
                time(draft, ("timeouts", "queue"));
            }
            "http.pool.destroy_timeout" if units::milliseconds(text, SECOND) != Some(0) => {
                time(draft, ("timeouts", "drain"));
            }
            "http.pool.supervisor.ttl" => time(draft, ("limits", "age_max")),
            "http.pool.supervisor.idle_ttl" if units::milliseconds(text, SECOND) != Some(0) => {
                time(draft, ("workers", "idle_max"));
            }
            "http.pool.supervisor.exec_ttl" => time(draft, ("timeouts", "request")),
            "http.pool.supervisor.max_worker_memory" => {
                shared::size(draft, ("limits", "memory_max"), text, MEBIBYTE, &origin);
            }
            "http.pool.dynamic_allocator.idle_timeout" => time(draft, ("workers", "idle_max")),
            "http.max_request_size" => {
                shared::size(draft, ("limits", "body_bytes_max"), text, MEBIBYTE, &origin);
                draft.differs(&origin, "PHP's post_max_size applies too: set it in [php]");
            }
            "http.trusted_subnets" => {
                for (network, line) in &texts {
                    draft.add("", "trusted_proxies", network, &self.origin(*line));
                }
            }
            "http.uploads.dir" => {
                draft.set("php", "upload_tmp_dir", Value::text(text), &origin);
            }
            "http.static.dir" => {
                let advice = "files below `root` are served: the folder of the front controller";
                draft.differs(&origin, advice);
            }
            "http.middleware" => middleware(draft, &texts, self),
            "http.ssl.cert" => {
                draft.add("tls", "certificates", &resolved(self.file, text), &origin);
            }
            "http.ssl.key" => draft.add("tls", "keys", &resolved(self.file, text), &origin),
            "http.ssl.root_ca" => {
                draft.set("tls", "client_ca", Value::Text(resolved(self.file, text)), &origin);
            }
            "http.ssl.acme.domains" => {
                for (domain, line) in &texts {
                    draft.add("acme", "domains", domain, &self.origin(*line));
                }
            }
            "http.ssl.acme.email" => draft.set("acme", "email", Value::text(text), &origin),
            "logs.level" => {
                let level = match text {
                    "panic" | "error" => "error",
                    "debug" => "debug",
                    "info" => "info",
                    _ => "warn",
                };
                draft.set("", "log_level", Value::text(level), &origin);
            }
            "logs.encoding" if text == "json" => {
                draft.set("", "log_format", Value::text("json"), &origin);
            }
            "logs.encoding" => draft.built_in(&origin, "not needed"),
            "logs.output" | "logs.err_output" => {
                let target = if matches!(text, "stderr" | "stdout") { "-" } else { text };
                draft.settings.set("", "log", Value::text(target), &origin);
            }
            "status.address" | "metrics.address" => admin(draft, text, &origin),
            "otel.service_name" => {
                draft.set("insight", "service", Value::text(text), &origin);
            }
            "otel.endpoint" => {
                let scheme = if text.contains("://") { "" } else { "http://" };
                draft.set("insight", "otlp", Value::Text(format!("{scheme}{text}")), &origin);
                draft.differs(&origin, "`insight.otlp` is OTLP over HTTP, not gRPC");
            }
            _ => self.other(draft, key, text, &origin),
        }
    }

    fn other(&mut self, draft: &mut Draft, key: &str, text: &str, origin: &Origin) {
        if let Some(name) = key.strip_prefix("http.headers.response.") {
            let mut headers =
                std::mem::replace(&mut self.headers, Block::new(Kind::Location, origin));
            header(draft, &mut headers, name, text, origin);
            self.headers = headers;
        } else if key.starts_with("http.headers.cors.") {
            draft.missing(origin, "answer CORS requests in PHP; constant headers: `headers`");
        } else if key.starts_with("http.headers.request.") {
            draft.missing(origin, "set `variables` in a [[location]]");
        } else if let Some(rest) = key.strip_prefix("service.") {
            service(draft, rest, text, origin);
        } else if BUILT_IN.iter().any(|start| key.starts_with(start))
            || matches!(text, "off" | "0" | "0s" | "false" | "")
        {
            draft.built_in(origin, "not needed");
        } else {
            let known = ADVICE.iter().find(|(start, _)| key.starts_with(start));
            let advice = known.map_or("there is no setting like it", |(_, advice)| *advice);
            draft.missing(origin, advice);
        }
    }

    /// `php worker.php`: the worker is the front controller.
    fn command(&self, draft: &mut Draft, texts: &[(String, u32)], origin: &Origin) {
        let words = texts.iter().flat_map(|(text, _)| text.split_whitespace());
        let script = words.map(shared::unquoted).find(|word| is_script(word));
        match script {
            Some(script)
                if script.contains("roadrunner-worker") || script.contains("rr_worker") =>
            {
                draft.set("", "root", Value::Text(resolved(self.file, "public")), origin);
                draft.differs(origin, "see docs/start/from-octane.md for Laravel Octane");
            }
            Some(script) => {
                draft.set("", "root", Value::Text(resolved(self.file, script)), origin);
                draft.set("", "compat", Value::text("frankenphp"), origin);
                let advice = "its folder is the document root: move the worker to public/; see \
                              docs/start/from-roadrunner.md";
                draft.differs(origin, advice);
            }
            None => draft.missing(origin, "set `root` to the script of the workers"),
        }
    }
}

fn middleware(draft: &mut Draft, texts: &[(String, u32)], reader: &Reader<'_>) {
    for (name, line) in texts {
        let origin = reader.origin(*line);
        match name.as_str() {
            "gzip" => draft.add("compression", "codings", "gzip", &origin),
            "sendfile" => draft.missing(&origin, "name the folders in [sendfile]"),
            "headers" | "static" | "http_metrics" | "otel" => draft.built_in(&origin, "not needed"),
            "proxy_ip_parser" => draft.built_in(&origin, "`trusted_proxies` has the same effect"),
            _ => draft.missing(&origin, "middlewares of RoadRunner are not available"),
        }
    }
}

/// `service.NAME.command` and its neighbours.
fn service(draft: &mut Draft, key: &str, text: &str, origin: &Origin) {
    let Some((name, key)) = key.split_once('.') else {
        return draft.missing(origin, "use a [[console]]");
    };
    let value = Value::text(name);
    let known = draft.blocks.iter().position(|block| {
        block.kind == Kind::Console
            && block.entries.get("", "name").is_some_and(|n| n.value == value)
    });
    match (key, known) {
        ("command", None) => {
            let words: Vec<&str> = text.split_whitespace().collect();
            let words = words.strip_prefix(&["php"]).unwrap_or(&words);
            let Some((script, args)) = words.split_first() else {
                return draft.missing(origin, "the command is empty");
            };
            let is_php = is_script(script) || text.starts_with("php ");
            if !is_php || args.is_empty() {
                return draft
                    .missing(origin, "a [[console]] runs PHP commands: use systemd for it");
            }
            let mut block = Block::new(Kind::Console, origin);
            block.set("name", value, origin);
            block.set("script", Value::Text(resolved(&origin.file, script)), origin);
            block.set("command", Value::Text(args.join(" ")), origin);
            draft.push(block);
        }
        ("process_num", Some(number)) => {
            draft.blocks[number].set("count", Value::plain(text), origin);
        }
        ("timeout_stop_sec", Some(number)) => {
            let value = Value::Text(format!("{text}s"));
            draft.blocks[number].set("stop_timeout", value, origin);
        }
        ("remain_after_exit" | "restart_sec", _) => draft.built_in(origin, "it is restarted"),
        _ => draft.missing(origin, "a [[console]] has no setting like it"),
    }
}

/// The first operators' address becomes that of the admin listener.
fn admin(draft: &mut Draft, text: &str, origin: &Origin) {
    let address = text.trim_start_matches("tcp://");
    if draft.settings.get("", "admin").is_some() {
        draft.built_in(origin, "`admin` serves /metrics, /health and /ready");
    } else {
        draft.set("", "admin", Value::text(address), origin);
        draft.differs(origin, "the paths are /metrics, /health and /ready; /metrics needs a token");
    }
}
