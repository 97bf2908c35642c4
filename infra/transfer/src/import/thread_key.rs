//! Maps a page of the source to a thread, `type/id`: by the lines of `--map`, by the source's own id, or by a rule that
//! a host page can compute too.
//!
//! The rule: drop the scheme, host, fragment, slashes at both ends, and the query except for the parameters of
//! `--keep-query`. Replace each inner slash with `:`, and each byte of any other character that isn't allowed in a
//! record id with `~` and two uppercase hexadecimal digits. An empty id becomes `~`. An id of more than 128 characters
//! is cut to 95, followed by `~` and the first 32 hexadecimal digits of its SHA-256.

use std::borrow::Cow;
use std::fmt::Write;

use percent_encoding::percent_decode_str;
use shared::config::is_type;
use shared::domain::ids::{ThreadId, sha256_hex};

use super::record::Thread;

/// The error for a type that [`is_type`] refuses.
pub const NO_TYPE: &str = "records cannot have this type; see SVC_TYPES in docs/settings.md";

const MAX_ID: usize = 128;
const CUT: usize = 95;
const HASH_DIGITS: usize = 32;

/// The thread for a page of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Thread(ThreadId),
    /// No line of `--map` matches, and the page has an invalid id, or neither an id nor a URL.
    Unmapped,
    /// The page's host isn't listed in `--host`.
    ForeignHost,
}

#[derive(Clone, Debug, Default)]
pub struct ThreadKeys {
    pub map: Map,
    /// The default type of threads.
    pub kind: String,
    /// The site's own hosts. Empty allows any host.
    pub hosts: Vec<String>,
    /// Query parameters that are part of an id.
    pub keep_query: Vec<String>,
}

impl ThreadKeys {
    #[must_use]
    pub fn target(&self, thread: &Thread) -> Target {
        if self.is_foreign(thread) {
            return Target::ForeignHost;
        }
        let address = thread.url.as_deref().map(page_of);
        let names = [Some(thread.key.as_str()), thread.url.as_deref(), address.as_deref(), thread.id.as_deref()];
        // An address without a scheme, such as that of a translation, matches lines with `https:` and `http:` too.
        let address_of =
            |scheme| address.as_deref().filter(|address| address.starts_with("//")).map(|rest| [scheme, rest].concat());
        let schemes = ["https:", "http:"].map(address_of);
        let names = names.into_iter().flatten().chain(thread.aliases.iter().map(String::as_str));
        let names = names.chain(schemes.iter().flatten().map(String::as_str));
        if let Some(mapped) = self.map.find(names.collect::<Vec<_>>().as_slice(), |rest| self.path_id(rest)) {
            return Target::Thread(mapped);
        }
        let kind = thread.kind.as_deref().unwrap_or(&self.kind);
        let own = thread.id.as_deref().map(bounded);
        let id = own.or_else(|| address.as_deref().map(|address| bounded(&self.path_id(without_host(address)))));
        id.and_then(|id| ThreadId::new(kind, &id)).map_or(Target::Unmapped, Target::Thread)
    }

    /// Whether the page is on another host than the site. The first of its names that includes a host decides.
    fn is_foreign(&self, thread: &Thread) -> bool {
        let mut names = thread.url.iter().chain([&thread.key]).chain(&thread.aliases);
        let is_own = |address: &str| has_host(address).then(|| self.hosts.iter().any(|own| is_on_host(address, own)));
        !self.hosts.is_empty() && names.find_map(|name| is_own(&page_of(name))) == Some(false)
    }

    /// The id of a path according to the rule, before the id's length is limited.
    fn path_id(&self, path: &str) -> String {
        let path = path.split('#').next().unwrap_or_default();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let kept = query.split('&').filter(|pair| {
            let name = pair.split('=').next().unwrap_or_default();
            !name.is_empty() && self.keep_query.iter().any(|keep| keep.trim() == name)
        });
        let mut text = path.trim_matches('/').to_owned();
        for (index, pair) in kept.enumerate() {
            text.push(if index == 0 { '?' } else { '&' });
            text.push_str(pair);
        }
        escape(&text)
    }
}

/// Escapes all characters that aren't allowed in a record id.
fn escape(text: &str) -> String {
    if text.is_empty() {
        return "~".to_owned();
    }
    let mut id = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'/' => id.push(':'),
            b if b.is_ascii_alphanumeric() || b"._~:-".contains(&b) => id.push(char::from(b)),
            // Writing to a `String` can't fail.
            b => drop(write!(id, "~{b:02X}")),
        }
    }
    id
}

fn bounded(id: &str) -> String {
    if id.len() <= MAX_ID || !id.is_ascii() {
        return id.to_owned();
    }
    format!("{}~{}", &id[..CUT], &sha256_hex(id)[..HASH_DIGITS])
}

/// The host and port of an address: `host:port` for `scheme://user@host:port/path`, and `host` for `//host/path`.
fn host(address: &str) -> Option<&str> {
    let rest = after_scheme(address)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    Some(authority.rsplit('@').next().unwrap_or_default())
}

pub(super) fn has_host(address: &str) -> bool {
    after_scheme(address).is_some()
}

fn without_host(address: &str) -> &str {
    match after_scheme(address) {
        Some(rest) => rest.find(['/', '?', '#']).map_or("", |end| &rest[end..]),
        None => address,
    }
}

/// The part of an absolute address after `//`.
fn after_scheme(address: &str) -> Option<&str> {
    if let Some(rest) = address.strip_prefix("//") {
        return Some(rest);
    }
    let (scheme, rest) = address.split_once("://")?;
    let valid = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+.-".contains(&b));
    valid.then_some(rest)
}

/// Whether an address is on the site's host `own`, in any spelling. Accepts any port, unless `own` names one.
pub(super) fn is_on_host(address: &str, own: &str) -> bool {
    let ((own, own_port), (host, port)) = (parts(own), parts(host(address).unwrap_or_default()));
    let scheme = address.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let is_port = |own| match (port, scheme.as_str()) {
        (Some(port), _) => own == port,
        (None, "https") => own == "443",
        (None, "http") => own == "80",
        (None, _) => matches!(own, "443" | "80"),
    };
    own == host && own_port.is_none_or(is_port)
}

/// The name of a host as browsers send it, in lower case and Punycode, and its port.
fn parts(host: &str) -> (String, Option<&str>) {
    let port = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    let name = port.map_or(host, |(name, _)| name);
    let name = url::Host::parse(name).map_or_else(|_| name.to_lowercase(), |name| name.to_string());
    (name, port.map(|(_, port)| port))
}

/// Services that show pages under their own URL, with the query parameter that contains the page's URL.
const SERVICES: &[(&str, &str)] = &[
    ("translate.google.", "u"),
    ("translate.googleusercontent.com", "u"),
    ("translate.yandex.", "url"),
    ("translate.baiducontent.com", "query"),
    ("www.microsofttranslator.com", "a"),
    ("www.translatetheweb.com", "a"),
    ("cc.bingj.com", "u"),
];

/// The URL of the original page if `address` is that of a translation or a copy, or else `address`.
fn page_of(address: &str) -> Cow<'_, str> {
    let address = address.trim();
    let Some(host) = host(address).map(str::to_ascii_lowercase) else { return address.into() };
    let path = without_host(address);
    if let Some(site) = host.strip_suffix(".translate.goog") {
        return format!("//{}{}", dotted(site), without_translation(path)).into();
    }
    if let Some(rest) = path.strip_prefix("/search?").filter(|_| host == "webcache.googleusercontent.com") {
        return cached(rest).map_or_else(|| address.into(), Into::into);
    }
    if host == "web.archive.org" || host.ends_with(".cdn.ampproject.org") || host == "cdn.ampproject.org" {
        return archived(path).map_or_else(|| address.into(), Into::into);
    }
    let service = SERVICES.iter().find(|(service, _)| host.starts_with(service));
    service.and_then(|(_, name)| parameter(path, name)).map_or_else(|| address.into(), |page| absolute(page).into())
}

/// Converts `my--site-example-org` to `my-site.example.org`.
fn dotted(site: &str) -> String {
    site.replace("--", "\0").replace('-', ".").replace('\0', "-")
}

fn without_translation(path: &str) -> String {
    let (before, fragment) = path.split_once('#').map_or((path, ""), |(before, fragment)| (before, fragment));
    let Some((path, query)) = before.split_once('?') else { return path.to_owned() };
    let kept: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with("_x_tr_")).collect();
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    let fragment = if fragment.is_empty() { String::new() } else { format!("#{fragment}") };
    format!("{path}{query}{fragment}")
}

/// The page in a query such as `q=cache:CODE:example.org/page/+words`, where the code may be missing.
fn cached(query: &str) -> Option<String> {
    let query = parameter(&format!("?{query}"), "q")?;
    let rest = query.strip_prefix("cache:")?.split([' ', '+']).next()?;
    let (code, page) = rest.split_once(':').unwrap_or(("", rest));
    let is_code = !code.is_empty() && !code.contains(['.', '/']) && code != "http" && code != "https";
    Some(absolute(if is_code { page } else { rest }.to_owned()))
}

/// The page in a path such as `/web/20200102030405/http://example.org/page/` or `/c/s/example.org/page/`.
fn archived(path: &str) -> Option<String> {
    if let Some(rest) = path.strip_prefix("/web/") {
        return rest.split_once('/').map(|(_, page)| absolute(page.to_owned()));
    }
    let rest = ["/c/", "/v/"].into_iter().find_map(|kind| path.strip_prefix(kind))?;
    Some(absolute(rest.strip_prefix("s/").unwrap_or(rest).to_owned()))
}

fn absolute(page: String) -> String {
    if after_scheme(&page).is_some() { page } else { format!("//{page}") }
}

/// A query parameter, decoded.
fn parameter(path: &str, name: &str) -> Option<String> {
    let query = path.split_once('?')?.1.split('#').next()?;
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    let value = percent_decode_str(value).decode_utf8_lossy().into_owned();
    (!value.is_empty()).then_some(value)
}

/// The lines of `--map`: `exact` or `prefix*`, white space, `type/id`. For a prefix, the rest of the page's name,
/// converted by the rule above, replaces `*` in the id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map(Vec<Line>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    name: String,
    is_prefix: bool,
    kind: String,
    id: String,
}

impl Map {
    /// Parses the lines. Skips empty lines and lines that begin with `#`. Fails with the number of the first invalid
    /// line and the problem.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim).enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let parsed = lines.map(|(index, line)| Line::parse(line).map_err(|why| format!("line {}: {why}", index + 1)));
        parsed.collect::<Result<_, _>>().map(Self)
    }

    pub fn types(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|line| line.kind.as_str())
    }

    /// The thread of the first line that matches one of a page's names. `rule` turns the rest of an address into an id.
    fn find(&self, names: &[&str], rule: impl Fn(&str) -> String) -> Option<ThreadId> {
        self.0.iter().find_map(|line| names.iter().find_map(|name| line.target(name, &rule)))
    }
}

impl Line {
    fn parse(line: &str) -> Result<Self, &'static str> {
        let mut words = line.split_whitespace();
        let (Some(name), Some(target), None) = (words.next(), words.next(), words.next()) else {
            return Err("expected a key, white space and type/id");
        };
        let (kind, id) = target.split_once('/').ok_or("expected type/id after the key")?;
        let (name, is_prefix) = name.strip_suffix('*').map_or((name, false), |prefix| (prefix, true));
        let sample = if is_prefix { id.replace('*', "x") } else { id.to_owned() };
        if !is_type(kind) {
            return Err(NO_TYPE);
        }
        if ThreadId::new(kind, &sample).is_none() {
            return Err("expected an id of 1 to 128 characters from A-Z a-z 0-9 . _ ~ : -");
        }
        Ok(Self { name: name.to_owned(), is_prefix, kind: kind.to_owned(), id: id.to_owned() })
    }

    fn target(&self, name: &str, rule: impl Fn(&str) -> String) -> Option<ThreadId> {
        let rest = name.strip_prefix(self.name.as_str())?;
        if !self.is_prefix {
            return rest.is_empty().then(|| ThreadId::new(&self.kind, &self.id)).flatten();
        }
        let id = if self.id.contains('*') { self.id.replace('*', &rule(rest)) } else { self.id.clone() };
        ThreadId::new(&self.kind, &bounded(&id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> ThreadKeys {
        ThreadKeys { kind: "posts".to_owned(), ..ThreadKeys::default() }
    }

    fn page(url: &str) -> Thread {
        Thread { key: "k".to_owned(), url: Some(url.to_owned()), ..Thread::default() }
    }

    fn target(keys: &ThreadKeys, thread: &Thread) -> String {
        match keys.target(thread) {
            Target::Thread(id) => format!("{}/{}", id.kind, id.record),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn the_rule_derives_thread_ids_from_urls() {
        for (url, expected) in [
            ("https://example.org/blog/hello/", "posts/blog:hello"),
            ("HTTP://ada@example.org:8080/blog/hello?utm=1#comment-7", "posts/blog:hello"),
            ("//example.org/a", "posts/a"),
            ("/2014/test/", "posts/2014:test"),
            ("2014/test.html", "posts/2014:test.html"),
            ("//example.org", "posts/~"),
            ("https://example.org/?p=4", "posts/~"),
            ("https://example.org?p=4", "posts/~"),
            ("/a//b/", "posts/a::b"),
            ("/caf%C3%A9", "posts/caf~25C3~25A9"),
            ("/café", "posts/caf~C3~A9"),
            ("/~ada/a:b_c-d.e", "posts/~ada:a:b_c-d.e"),
            ("/a b/(c)", "posts/a~20b:~28c~29"),
        ] {
            assert_eq!(target(&keys(), &page(url)), expected, "{url}");
        }
    }

    #[test]
    fn named_parameters_of_the_query_are_kept() {
        // The values of `--keep-query "p, id,"`.
        let keys = ThreadKeys { keep_query: vec!["p".into(), " id".into(), String::new()], ..keys() };
        for (url, expected) in [
            ("https://example.org/?p=4&utm=1", "posts/~3Fp~3D4"),
            ("/blog/?x=1&id=a/b&p=4#c", "posts/blog~3Fid~3Da:b~26p~3D4"),
            ("/blog/?page=4", "posts/blog"),
            ("/blog/", "posts/blog"),
        ] {
            assert_eq!(target(&keys, &page(url)), expected, "{url}");
        }
    }

    #[test]
    fn a_long_id_is_cut_and_gets_a_hash() {
        let long = "x".repeat(128);
        assert_eq!(target(&keys(), &page(&long)), format!("posts/{long}"));
        let (one, other) = (target(&keys(), &page(&format!("{long}1"))), target(&keys(), &page(&format!("{long}2"))));
        assert_ne!(one, other);
        for id in [one, other] {
            let id = id.strip_prefix("posts/").unwrap();
            assert_eq!(id.len(), MAX_ID);
            assert_eq!(&id[..=CUT], format!("{}~", "x".repeat(CUT)));
        }
        // The output of `printf 'x%.0s' {1..129} | sha256sum`.
        assert!(target(&keys(), &page(&"x".repeat(129))).ends_with("~0ec9eb33e74510bcdd1f2ea55206e82f"));
        // The limit counts characters of the id, three of which may represent one byte of the address.
        let words = target(&keys(), &page(&"/a b".repeat(50)));
        assert!(words.starts_with("posts/a~20b:a~20b:") && words.len() == "posts/".len() + MAX_ID, "{words}");
    }

    #[test]
    fn an_id_in_the_source_takes_precedence_over_the_rule() {
        let thread = Thread { id: Some("18".into()), ..page("https://example.org/2014/test/") };
        assert_eq!(target(&keys(), &thread), "posts/18");
        let native = Thread { kind: Some("pages".into()), ..thread };
        assert_eq!(target(&keys(), &native), "pages/18");
    }

    #[test]
    fn a_page_without_an_address_is_unmapped() {
        let thread = Thread { key: "1337".into(), ..Thread::default() };
        assert_eq!(keys().target(&thread), Target::Unmapped);
        let mapped = ThreadKeys { map: Map::parse("1337 posts/7").unwrap(), ..keys() };
        assert_eq!(target(&mapped, &thread), "posts/7");
    }

    #[test]
    fn the_first_matching_line_of_the_map_wins() {
        let text =
            "# ours\n\nhttps://a.example/one posts/1\nhttps://a.example/* pages/a:*\n/one posts/2\n/x* posts/x\n";
        let keys = ThreadKeys { map: Map::parse(text).unwrap(), ..keys() };
        for (url, expected) in [
            ("https://a.example/one", "posts/1"),
            ("https://a.example/two/three/?q#f", "pages/a:two:three"),
            ("https://a.example/", "pages/a:~"),
            ("/one", "posts/2"),
            ("/one/", "posts/one"),
            ("/xyz", "posts/x"),
        ] {
            assert_eq!(target(&keys, &page(url)), expected, "{url}");
        }
        let long = page(&format!("https://a.example/{}", "y".repeat(200)));
        assert_eq!(target(&keys, &long).len(), "pages/".len() + MAX_ID);
    }

    #[test]
    fn an_address_without_a_scheme_matches_lines_with_any_scheme() {
        for line in ["https://example.org/*", "http://example.org/*", "//example.org/*"] {
            let keys = ThreadKeys { map: Map::parse(&format!("{line} posts/b:*")).unwrap(), ..keys() };
            for url in [
                "//example.org/a",
                "https://example-org.translate.goog/a?_x_tr_sl=en",
                "https://example-org.cdn.ampproject.org/c/s/example.org/a",
                "http://webcache.googleusercontent.com/search?q=cache:Xy_1-z:example.org/a+words",
            ] {
                assert_eq!(target(&keys, &page(url)), "posts/b:a", "{line} {url}");
            }
        }
        let keys = ThreadKeys { map: Map::parse("http://example.org/* posts/b:*").unwrap(), ..keys() };
        assert_eq!(target(&keys, &page("https://example.org/a")), "posts/a");
    }

    #[test]
    fn a_host_without_a_port_has_the_default_port_of_the_scheme() {
        let own = |host: &str, url: &str| {
            target(&ThreadKeys { hosts: vec![host.to_owned()], ..keys() }, &page(url)) == "posts/a"
        };
        for (host, url, expected) in [
            ("example.org:443", "https://example.org/a", true),
            ("example.org:443", "HTTPS://example.org:443/a", true),
            ("example.org:443", "http://example.org/a", false),
            ("example.org:80", "http://example.org/a", true),
            ("example.org:80", "https://example.org/a", false),
            ("example.org:80", "//example.org/a", true),
            ("example.org:8080", "//example.org/a", false),
            ("example.org:443", "https://example.org:8443/a", false),
        ] {
            assert_eq!(own(host, url), expected, "{host} {url}");
        }
    }

    #[test]
    fn a_line_of_the_map_may_have_any_name_of_a_page() {
        let keys = ThreadKeys { map: Map::parse("node-7 posts/7").unwrap(), ..keys() };
        let thread = Thread { aliases: vec!["node-7".into()], ..page("/seven") };
        assert_eq!(target(&keys, &thread), "posts/7");
    }

    #[test]
    fn a_bad_line_of_the_map_is_an_error_with_its_number() {
        for (text, number) in [
            ("a posts/1\nb", 2),
            ("a posts", 1),
            ("a posts/", 1),
            ("a posts/x!", 1),
            ("a posts/* b", 1),
            ("a posts/*", 1),
            ("a users/1", 1),
        ] {
            let error = Map::parse(text).unwrap_err();
            assert!(error.starts_with(&format!("line {number}: ")), "{text}: {error}");
        }
    }

    #[test]
    fn only_pages_on_the_sites_own_hosts_are_accepted_if_hosts_are_set() {
        let keys = ThreadKeys { hosts: vec!["Example.org".into(), "localhost:1313".into()], ..keys() };
        for (url, expected) in [
            ("https://example.org/a", "posts/a"),
            ("http://EXAMPLE.org:8080/a", "posts/a"),
            ("//localhost:1313/a", "posts/a"),
            ("//localhost:80/a", "ForeignHost"),
            ("https://other.example/a", "ForeignHost"),
            ("https://example.org.evil.example/a", "ForeignHost"),
            ("/a", "posts/a"),
        ] {
            assert_eq!(target(&keys, &page(url)), expected, "{url}");
        }
        let keys = ThreadKeys { hosts: vec!["bücher.example".into(), "xn--caf-dma.example".into()], ..keys };
        for (url, expected) in [
            ("https://xn--bcher-kva.example/a", "posts/a"),
            ("https://BÜCHER.example:8080/a", "posts/a"),
            ("https://café.example/a", "posts/a"),
            ("https://bucher.example/a", "ForeignHost"),
        ] {
            assert_eq!(target(&keys, &page(url)), expected, "{url}");
        }
        let keys = ThreadKeys { hosts: vec!["example.org".into()], ..keys };
        // A page of Comentario has a path. The addresses of its comments include the host.
        for (alias, expected) in [("https://example.org/a", "posts/a"), ("https://other.example/a", "ForeignHost")] {
            let thread = Thread { aliases: vec!["7".into(), alias.into()], ..page("/a") };
            assert_eq!(target(&keys, &thread), expected, "{alias}");
            let thread = Thread { key: alias.into(), id: Some("a".into()), ..Thread::default() };
            assert_eq!(target(&keys, &thread), expected, "{alias}");
        }
    }

    #[test]
    fn translations_and_copies_count_as_the_page_they_show() {
        let keys = ThreadKeys { hosts: vec!["my-site.example.org".into()], keep_query: vec!["p".into()], ..keys() };
        for url in [
            "https://my-site.example.org/a/b?p=1",
            "https://translate.google.com/translate?hl=en&sl=de&u=https://my-site.example.org/a/b%3Fp%3D1&prev=search",
            "http://translate.google.co.uk/translate?u=my-site.example.org%2Fa%2Fb%3Fp%3D1",
            "https://translate.googleusercontent.com/translate_c?depth=1&u=https%3A%2F%2Fmy-site.example.org/a/b%3Fp%3D1&usg=x",
            "https://my--site-example-org.translate.goog/a/b?p=1&_x_tr_sl=de&_x_tr_tl=en",
            "http://webcache.googleusercontent.com/search?q=cache:Xy_1-z:my-site.example.org/a/b%3Fp%3D1+words&hl=en",
            "http://webcache.googleusercontent.com/search?q=cache:https://my-site.example.org/a/b%3Fp%3D1",
            "https://web.archive.org/web/20200102030405/https://my-site.example.org/a/b?p=1",
            "https://my--site-example-org.cdn.ampproject.org/c/s/my-site.example.org/a/b?p=1",
        ] {
            assert_eq!(target(&keys, &page(url)), "posts/a:b~3Fp~3D1", "{url}");
        }
    }
}
