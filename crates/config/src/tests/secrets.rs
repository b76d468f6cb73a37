//! Secrets in messages and dumps.

use super::{problems, resolve};
use crate::schema::table::SETTINGS;

#[test]
fn no_message_contains_a_secret() {
    let secrets: Vec<_> = SETTINGS.iter().filter(|setting| setting.is_secret).collect();
    assert!(secrets.len() >= 5, "{secrets:?}");
    let wrong = "se\u{1}cret";
    for setting in secrets {
        let key = setting.key;
        // The value is wrong for each of them, or has the wrong type.
        for file in [
            format!("{key} = \"se\\u0001cret\""),
            format!("{key} = [\"secret\"]"),
            format!("{key}.a = [\"secret\"]"),
            format!("{key}.\"a b\" = \"secret\""),
            format!("{key} = 'secret"),
        ] {
            let said = problems(&file, &[]);
            assert!(!said.contains("secret"), "{file}: {said}");
        }
        let variable = format!("{}={wrong}", setting.env());
        let flag = format!("--{}", setting.flag);
        for typed in [&[variable.as_str()][..], &[flag.as_str(), wrong]] {
            let said = problems("", typed);
            assert!(said.contains("***") && !said.contains("cret"), "{typed:?}: {said}");
        }
    }
    let long = "a-secret-of-16-characters";
    let settings = resolve("", &["--admin-token", long, "--insight-otlp-headers", "a=a-secret"]);
    assert!(!format!("{settings:?}").contains("a-secret"));
}
