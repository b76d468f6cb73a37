//! Resolved settings: formats of logs.

words! {
/// Format of the access log.
pub enum AccessLogFormat {
    /// The combined format of Apache and nginx.
    #[default]
    Combined = "combined",
    /// One JSON object per line, with time, CPU and memory.
    Json = "json",
}
}

words! {
/// Verbosity of the server's own log.
pub enum LogLevel {
    /// Failures only.
    Error = "error",
    /// Also conditions that need attention.
    #[default]
    Warn = "warn",
    /// Also actions of the server.
    Info = "info",
    /// Also actions for each request.
    Debug = "debug",
    /// Also each step of these actions.
    Trace = "trace",
}
}

words! {
/// Format of the server's own log lines.
pub enum LogFormat {
    /// Text lines for people.
    #[default]
    Text = "text",
    /// One JSON object per line.
    Json = "json",
}
}
