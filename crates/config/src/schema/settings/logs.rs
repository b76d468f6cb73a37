//! What comes out: how logs look.

words! {
/// How each request is logged.
pub enum AccessLogFormat {
    /// The combined format of Apache and nginx.
    #[default]
    Combined = "combined",
    /// One JSON object per line, with time, CPU and memory.
    Json = "json",
}
}

words! {
/// What the server says about itself.
pub enum LogLevel {
    /// What failed, and nothing else.
    Error = "error",
    /// Also what needs attention.
    #[default]
    Warn = "warn",
    /// Also what the server does.
    Info = "info",
    /// Also what each request does.
    Debug = "debug",
    /// Also each step of what it does.
    Trace = "trace",
}
}

words! {
/// How the server's own log lines look.
pub enum LogFormat {
    /// As lines for people to read.
    #[default]
    Text = "text",
    /// One JSON object per line.
    Json = "json",
}
}
