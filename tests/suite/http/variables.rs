//! `$_SERVER` is copied from a prepared array with the constant entries. The result must be correct
//! for all kinds of requests.

use crate::http::app;
use samovar_testkit::http::Request;

/// Numbers of headers, from none to more than the array's initial capacity, twice.
const HEADERS: [usize; 8] = [0, 1, 7, 20, 33, 64, 65, 90];

#[test]
fn copied_server_array_equals_built_one() {
    // The environment contains names that requests also set. They keep their position in the array.
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
                let response = server.client().request(&request);
                let expected = format!("same {https} {}", count + 1);
                assert_eq!(response.text(), expected, "{method}, {count} headers");
            }
        }
    }
    server.stop();
}
