//! `go tool pprof`, which reads profiles.

use std::process::Command;

/// Debian's prebuilt one. A newer Go that comes first in `PATH` would build its own, which takes
/// most of a minute.
pub fn go_tool_pprof() -> Command {
    let tools = std::fs::read_dir("/usr/lib/go/pkg/tool").into_iter().flatten().flatten();
    let built = tools.map(|folder| folder.path().join("pprof")).find(|tool| tool.exists());
    built.map_or_else(
        || {
            let mut go = Command::new("go");
            go.args(["tool", "pprof"]);
            go
        },
        Command::new,
    )
}
