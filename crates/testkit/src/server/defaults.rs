//! Default settings of the servers under test.

use std::path::Path;

/// The PHP settings that Samovar and the oracle share, so that their responses can be equal.
pub fn ini(folder: &Path) -> Vec<(String, String)> {
    let folder = folder.display();
    [
        ("display_errors", "1".into()),
        ("html_errors", "1".into()),
        ("error_reporting", "E_ALL".into()),
        ("log_errors", "1".into()),
        ("output_buffering", "4096".into()),
        ("implicit_flush", "0".into()),
        ("expose_php", "0".into()),
        ("variables_order", "GPCS".into()),
        ("request_order", "GP".into()),
        ("register_argc_argv", "0".into()),
        ("session.save_path", format!("{folder}/sessions")),
        ("upload_tmp_dir", format!("{folder}/uploads")),
        ("post_max_size", "256K".into()),
        ("upload_max_filesize", "128K".into()),
        ("max_file_uploads", "5".into()),
        ("max_input_vars", "200".into()),
        ("memory_limit", "64M".into()),
        ("max_execution_time", "30".into()),
        ("date.timezone", "UTC".into()),
    ]
    .map(|(key, value): (&str, String)| (key.to_owned(), value))
    .to_vec()
}

/// Default number of front threads in tests: `FRONT_THREADS`, which `make threads` sets, or one.
pub fn front_threads() -> usize {
    let asked = std::env::var("FRONT_THREADS").ok();
    asked.map_or(1, |count| count.parse().expect("FRONT_THREADS is a number"))
}
