//! The compiled-in files: the widget, the moderators' element, and the moderators' page.

use http::Method;
use http::header::{ACCEPT_ENCODING, IF_NONE_MATCH, ORIGIN};
use tests::{Actor, TestResponse, World};

const FILES: [(&str, &str); 3] = [
    ("embed.js", "text/javascript; charset=utf-8"),
    ("moderation.js", "text/javascript; charset=utf-8"),
    ("moderate", "text/html; charset=utf-8"),
];

/// The name of a part of the widget, with a hash that no version had.
pub(crate) const WRITER: &str = "writer.0000000000000000.js";

fn text(reply: &TestResponse) -> &str {
    reply.json.as_str().unwrap()
}

#[tokio::test]
async fn a_file_has_its_type_and_is_kept_by_caches_for_an_hour() {
    let guest = World::new().guest();
    for (path, content_type) in FILES {
        let reply = guest.get(path).await.ok(200);
        assert_eq!(reply.header("content-type"), content_type);
        assert_eq!(reply.header("cache-control"), "public, max-age=3600, stale-while-revalidate=86400");
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        assert_eq!(reply.header("vary"), "Accept-Encoding");
        let known = guest.clone().with(IF_NONE_MATCH, reply.header("etag")).get(path).await.ok(304);
        assert!(known.body.is_empty(), "{path}");
        assert_eq!(known.header("etag"), reply.header("etag"));
    }
}

#[tokio::test]
async fn a_file_is_the_same_for_everyone_and_pages_of_any_origin_may_load_it() {
    let world = World::new();
    for (path, _) in FILES {
        let plain = world.guest().get(path).await.ok(200);
        let page = world.user(7, "Ada").with(ORIGIN, "https://blog.example").get(path).await.ok(200);
        assert_eq!((page.header("access-control-allow-origin"), &page.body), ("*", &plain.body));
        assert_eq!((page.header("etag"), page.header("vary")), (plain.header("etag"), plain.header("vary")));
    }
}

#[tokio::test]
async fn a_file_is_sent_compressed_to_clients_that_accept_gzip() {
    let guest = World::new().guest();
    for (path, _) in FILES {
        let plain = guest.get(path).await.ok(200);
        let compressed = guest.clone().with(ACCEPT_ENCODING, "gzip").get(path).await.ok(200);
        assert_eq!(text(&compressed), text(&plain), "{path}");
        assert_eq!(compressed.header("content-encoding"), "gzip", "{path}");
        assert!(compressed.body.len() < plain.body.len(), "{path}");
    }
}

/// Returns the path of the part that the widget loads.
async fn writer(guest: &Actor) -> String {
    let embed = guest.get("embed.js").await.ok(200);
    let (_, rest) = text(&embed).split_once("import('./").unwrap();
    rest.split_once('\'').unwrap().0.to_owned()
}

#[tokio::test]
async fn a_part_of_the_widget_is_cached_permanently() {
    let guest = World::new().guest().with(ORIGIN, "https://blog.example");
    let path = writer(&guest).await;
    let part = guest.get(&path).await.ok(200);
    assert!(text(&part).starts_with("export default("));
    assert_eq!(part.header("content-type"), "text/javascript; charset=utf-8");
    assert_eq!(part.header("cache-control"), "public, max-age=31536000, immutable");
    assert_eq!((part.header("access-control-allow-origin"), part.header("vary")), ("*", "Accept-Encoding"));
    assert_eq!(part.header("x-content-type-options"), "nosniff");
    guest.clone().with(IF_NONE_MATCH, part.header("etag")).get(&path).await.ok(304);
    let compressed = guest.clone().with(ACCEPT_ENCODING, "gzip").get(&path).await.ok(200);
    assert_eq!((compressed.header("content-encoding"), text(&compressed)), ("gzip", text(&part)));
}

#[tokio::test]
async fn an_outdated_hash_returns_the_current_part_without_caching() {
    let guest = World::new().guest().with(ORIGIN, "https://blog.example");
    let present = guest.get(&writer(&guest).await).await.ok(200);
    let older = guest.clone().with(ACCEPT_ENCODING, "gzip").get(&format!("embed/{WRITER}")).await.ok(200);
    assert_eq!(text(&older), text(&present));
    assert_eq!((older.header("cache-control"), older.header("content-encoding")), ("no-store", "gzip"));
    assert_eq!(older.header("access-control-allow-origin"), "*");
    for unknown in ["embed/reader.0000000000000000.js", "embed/writer", "embed/writer.css"] {
        guest.get(unknown).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn files_count_toward_no_limit_and_do_not_read_the_table() {
    let world = World::with(&[("SVC_READ_LIMIT", "1")]);
    let guest = world.guest();
    guest.get("ui").await.ok(200);
    guest.get("ui").await.refused(429, "rate_limited");
    for (path, _) in FILES {
        for actor in [&guest, &world.user(7, "Ada"), &world.guest().with_token("bad")] {
            let reply = actor.get(path).await.ok(200);
            assert!(!reply.headers.contains_key("x-ratelimit-limit"), "{path}");
            assert_eq!((reply.cost.trips, reply.cost.read_units), (0, 0.0), "{path}");
        }
    }
    let other = world.guest();
    let wrong = other.send(Method::POST, "embed.js", "").await.refused(405, "method_not_allowed");
    assert_eq!(wrong.header("allow"), "GET, HEAD");
}

#[tokio::test]
async fn the_scripts_define_their_elements() {
    let guest = World::new().guest();
    let embed = guest.get("embed.js").await.ok(200);
    assert!(text(&embed).contains("comment-thread") && text(&embed).contains("comment-count"));
    assert!(text(&guest.get("moderation.js").await.ok(200)).contains("comment-moderation"));
}

#[tokio::test]
async fn the_moderators_page_loads_its_script_and_allows_nothing_else() {
    let page = World::new().guest().get("moderate").await.ok(200);
    assert!(text(&page).contains(r#"moderation.js"></script>"#), "{}", text(&page));
    assert_eq!(
        page.header("content-security-policy"),
        "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' https:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    );
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    // The page's content security policy forbids inline styles, scripts and handlers.
    let page = text(&page).to_lowercase();
    assert!(!page.contains("<style") && !page.contains(" style="), "{page}");
    assert_eq!(page.matches("<script").count(), page.matches("></script>").count(), "{page}");
    let attributes = page.split('=').filter_map(|before| before.rsplit(|c: char| !c.is_ascii_alphabetic()).next());
    assert_eq!(attributes.filter(|name| name.starts_with("on")).collect::<Vec<_>>(), [""; 0]);
}
