//! Listeners and the certificates that they need.

use super::*;

#[test]
fn what_speaks_tls_needs_certificates_and_keys() {
    check_problem(
        "",
        &["--listen", "https://:443"],
        "the default of `tls.certificates` is not enough for `https://0.0.0.0:443`",
        "name a PEM file: `certificates = [\"/etc/ssl/example.pem\"]` below `[tls]`",
    );
    check_problem(
        "",
        &["--tls-certificates", "/a.pem,/b.pem", "--tls-keys", "/a.key"],
        "`--tls-keys /a.key` names 1 for 2 certificates",
        "name one for each of `tls.certificates`, in the same order, or none",
    );
}

#[test]
fn a_proxy_may_come_through_the_file_system() {
    let shown = |settings: &Settings| {
        format!("{} {}", settings.trusts_unix, list(&settings.trusted_proxies))
    };
    check("trusted_proxies = ['unix:', '::1']", &[], shown, "true ::1/128");
    check("trusted_proxies = ['unix:']", &["SAMOVAR_TRUSTED_PROXIES=::1"], shown, "false ::1/128");
    check(
        "listen = ['unix:/a', 'https+unix:/b?proxy']",
        &["--tls-certificates", "/c"],
        listen,
        "unix:/a https+unix:/b",
    );
}
