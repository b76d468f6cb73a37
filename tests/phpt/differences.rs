//! Tests of php-src that a web server answers otherwise, with the reason.

const COMMAND_LINE: &str = "it starts PHP's command line or its built-in server";
const OUTPUT_LOCK: &str = "PHP prints this fatal error past the SAPI, to standard output: \
    php-fpm's client does not see it either";

/// Names, and why they differ.
pub(crate) const EXPECTED_DIFFERENCES: &[(&str, &str)] = &[
    ("basic/bug20539", "its session.save_path is relative to where run-tests.php runs"),
    ("basic/bug67198", COMMAND_LINE),
    ("basic/bug71273", COMMAND_LINE),
    ("output/bug65593", OUTPUT_LOCK),
    ("output/bug70970", OUTPUT_LOCK),
    ("output/ob_011", OUTPUT_LOCK),
    ("output/ob_start_error_005", OUTPUT_LOCK),
    ("security/open_basedir_001", "a script outside open_basedir runs on the command line alone"),
    ("strings/002", "it writes to php://stdout, which is the server's, not the client's"),
];
