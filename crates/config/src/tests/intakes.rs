//! The tables `[[intake]]`: their values, and the problems of wrong tables.

use super::{Folder, problems};
use crate::{IntakeOverload, IntakeResponse};

#[test]
fn intake_tables_are_read_for_all_pools() {
    let file = "[[queue]]\nname = 'work'\nhandler = 'jobs/work.php'\n\
                [[intake]]\nmatch = ['POST /track', 'GET /a b/*']\nqueue = 'work'\n\
                response = 'gif'\nheaders = ['Referer']\nbody_bytes_max = '1K'\n\
                overload = 'drop'\n[[intake]]\nmatch = 'PUT /x'\nqueue = 'work'";
    let folder = Folder::new()
        .with("samovar.toml", file)
        .with("jobs/work.php", "")
        .with("public/index.php", "");
    let settings = folder.sources().resolve().unwrap();
    let [first, second] = &settings.intakes[..] else { panic!("{settings:?}") };
    let pair = |method: &str, path: &str| (method.to_owned(), path.to_owned());
    assert_eq!(first.matches, [pair("POST", "/track"), pair("GET", "/a b/*")]);
    assert_eq!((first.response, first.body_bytes_max), (IntakeResponse::Gif, 1024));
    assert_eq!((first.headers.join(","), first.overload), ("referer".into(), IntakeOverload::Drop));
    assert_eq!((second.response, second.body_bytes_max), (IntakeResponse::Status(204), 16 << 10));
    assert_eq!(settings.pools[0].settings.intakes, settings.intakes);
}

#[test]
fn mistake_in_intake_table_names_its_line() {
    let check = |keys: &str, expected: &str| {
        let text = problems(&format!("[[intake]]\n{keys}"), &[]);
        assert!(text.contains(expected), "{keys}: {text}");
    };
    check("queue = 'q'", "toml:1: an `[[intake]]` has no `match`");
    check("match = 'GET /'", "toml:1: an `[[intake]]` has no `queue`");
    check("match = '/track'", "toml:2: `match` of a `[[intake]]` is not allowed: the method or");
    check("match = 'HEAD /track'", "the methods are GET, POST, PUT, PATCH and DELETE");
    check("match = 'post /track'", "the methods are GET");
    check("match = 'POST track'", "the path does not begin with `/`");
    check("match = []", "toml:2: `match` of a `[[intake]]`");
    check("match = 'POST /'\nqueue = 'q'", "`queue = \"q\"` of an `[[intake]]` does not exist");
    check("match = 'POST /'\nqueue = 'q'\nresponse = 500", "toml:4: `response`");
    check("headers = ['a b']", "a name is not valid");
    check("body_bytes_max = '1M'", "a size from 0 to 40K");
    check("overload = 'wait'", "`overload` takes `reject`, `drop`");
    check("quue = 'q'", "unknown key `intake.quue`\nhint: did you mean `queue`?");
}
