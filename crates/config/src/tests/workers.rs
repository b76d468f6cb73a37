//! Number of workers: fixed, or a range in several notations.

use super::{check, check_problem};
use crate::Settings;

#[test]
fn range_of_workers_has_several_notations() {
    let range = |settings: &Settings| {
        let workers = &settings.workers;
        format!("{}..{} {:?}", workers.min, workers.max, workers.idle_max)
    };
    check("workers = 3", &[], range, "3..3 10s");
    check("workers = '2..64'", &[], range, "2..64 10s");
    check("workers = { min = 2, max = 64, idle_max = '1m' }", &[], range, "2..64 60s");
    check("workers = { max = 1 }", &[], range, "1..1 10s");
    check("[workers]\nmin = 2\nmax = 64", &["--workers", "5"], range, "5..5 10s");
    check("[workers]\nidle_max = '2s'", &["--workers", "2..256"], range, "2..256 2s");
}

#[test]
fn invalid_range_of_workers_is_reported() {
    let workers =
        "`workers` takes `auto`, a whole number from 1 to 1024, or a range of two such as `2..64`";
    let check = |file: &str, shown: &str, hint: &str| {
        check_problem(file, &[], &format!("samovar.toml:{shown} is not allowed"), hint);
    };
    check("workers = '4..2'", "1: `workers = '4..2'`", workers);
    check("workers = '0..2'", "1: `workers = '0..2'`", workers);
    check("workers = '2..1025'", "1: `workers = '2..1025'`", workers);
    check("workers = '2..'", "1: `workers = '2..'`", workers);
    check("workers = { min = 2 }", "1: `workers = { min = 2 }`", workers);
    check("workers = { min = 4, max = 2 }", "1: `workers = { min = 4, max = 2 }`", workers);
    check("workers = { max = '8' }", "1: `workers = { max = \"8\" }`", workers);
    check("[workers]\nmin = 1\nmax = [2]", "1: `workers = { min = 1, max = [2] }`", workers);
    check_problem(
        "[workers]\nmax = 5\nidel_max = '1m'",
        &[],
        "samovar.toml:3: unknown key `workers.idel_max`",
        "did you mean `workers.idle_max`?",
    );
}
