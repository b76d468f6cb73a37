//! Tests of php-src with different results in a web server, and the reasons.

const COMMAND_LINE: &str = "it starts PHP's command line or its built-in server";
const OUTPUT_LOCK: &str = "PHP prints this fatal error past the SAPI, to standard output: \
    php-fpm's client does not see it either";

const OPEN_BASEDIR: &str = "a script outside open_basedir runs on the command line alone";

/// Name of a test, and the reason for its difference.
pub(crate) type Difference = (&'static str, &'static str);

pub(crate) const EXPECTED_DIFFERENCES: &[Difference] = &[
    ("basic/bug20539", "its session.save_path is relative to where run-tests.php runs"),
    ("basic/bug67198", COMMAND_LINE),
    ("basic/bug71273", COMMAND_LINE),
    ("output/bug65593", OUTPUT_LOCK),
    ("output/bug70970", OUTPUT_LOCK),
    ("output/gh20352", OUTPUT_LOCK),
    ("output/gh20837", OUTPUT_LOCK),
    ("output/ob_011", OUTPUT_LOCK),
    ("output/ob_start_error_005", OUTPUT_LOCK),
    ("output/stream_isatty_no_warning_on_cast", COMMAND_LINE),
    ("security/error_log_special_values", OPEN_BASEDIR),
    ("security/open_basedir_001", OPEN_BASEDIR),
    ("strings/002", "it writes to php://stdout, which is the server's, not the client's"),
];

/// Additional differences while a task waits during the tests.
pub(crate) const DIFFERENCES_BESIDE_A_TASK: &[Difference] = &[];
