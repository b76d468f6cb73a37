//! `$_SERVER` is copied from what is the same in each request: whatever a request has besides.

use crate::http::app;
use samovar_testkit::http::Request;

/// From none to more than its room was made for, twice.
const HEADERS: [usize; 8] = [0, 1, 7, 20, 33, 64, 65, 90];

#[test]
fn a_copied_server_array_is_the_one_that_is_built() {
    // The environment has names of the request's own, which keep their places there.
    let server = app()
        .env("REQUEST_METHOD", "NONE")
        .env("REMOTE_PORT", "0")
        .env("HTTPS_ONLY", "1")
        .args(["--trusted-proxies", "127.0.0.1"])
        .start();
    for (proto, https) in [("http", "off"), ("https", "on")] {
        for count in HEADERS {
            for method in ["GET", "POST", "PUT"] {
                let mut request = Request::new(method, "/parameters?a=b");
                request = request.header("X-Forwarded-Proto", proto);
                for number in 0..count {
                    request = request.header(&format!("X-Further-{number}"), &number.to_string());
                }
                let answer = server.client().request(&request);
                let expected = format!("same {https} {}", count + 1);
                assert_eq!(answer.text(), expected, "{method}, {count} headers");
            }
        }
    }
    server.stop();
}
