//! Fuzzes comment bodies. The rendered HTML has a bounded size and contains no scripts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shared::domain::markdown::{mentions, render};

const MAX_HTML: usize = 64 * 1024;

fuzz_target!(|body: &str| {
    let mentions = mentions(body);
    let known = mentions.meant(&mentions.tries());
    assert!(known.len() <= 20);
    let html = render(body, "users", &known);
    // A body whose HTML would be too long is rendered as plain text: at most six bytes per input byte (`&quot;`), plus
    // the tags around it.
    assert!(html.len() <= MAX_HTML.max(6 * body.len() + 64), "{} bytes of {}", html.len(), body.len());
    for tag in html.split('<').skip(1) {
        let name: String = tag.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
        assert!(
            matches!(
                &*name,
                "a" | "blockquote"
                    | "br"
                    | "code"
                    | "em"
                    | "h1"
                    | "h2"
                    | "h3"
                    | "h4"
                    | "h5"
                    | "h6"
                    | "hr"
                    | "img"
                    | "li"
                    | "ol"
                    | "p"
                    | "pre"
                    | "strong"
                    | "ul"
            ),
            "<{tag}"
        );
        let markup = tag.split('>').next().unwrap_or_default().to_ascii_lowercase();
        for address in ["href=\"", "src=\""] {
            let Some((_, value)) = markup.split_once(address) else { continue };
            assert!(
                !value.starts_with("javascript:") && !value.starts_with("data:") && !value.starts_with("vbscript:"),
                "<{tag}"
            );
        }
    }
});
