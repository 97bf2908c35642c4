//! `comments.page`: a thread as HTML that works without scripts.

use http::header::{ACCEPT_LANGUAGE, COOKIE, IF_NONE_MATCH};
use serde_json::json;
use tests::{Actor, TestResponse, World};

const PAGE: &str = "posts/1/comments.html";

fn text(reply: &TestResponse) -> &str {
    reply.json.as_str().expect("a page is text")
}

async fn page(who: &Actor, query: &str) -> TestResponse {
    who.get(&format!("{PAGE}?{query}")).await.ok(200)
}

fn articles(reply: &TestResponse) -> Vec<u64> {
    let begins = text(reply).split("<article id=\"comment-").skip(1);
    begins.map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
}

/// Returns an article's start tag and content, up to the next article.
fn article(reply: &TestResponse, id: u64) -> String {
    let begin = format!("<article id=\"comment-{id}\"");
    let (_, rest) = text(reply).split_once(&begin).unwrap_or_else(|| panic!("{id} is not in {}", text(reply)));
    rest.split("<article").next().unwrap().to_owned()
}

/// Returns the target of the first link whose tag begins with `begin`.
fn link(reply: &TestResponse, begin: &str) -> Option<String> {
    let (_, rest) = text(reply).split_once(&format!("<a {begin} href=\""))?;
    Some(rest.split('"').next().unwrap().replace("&amp;", "&"))
}

/// Returns the ids on each page, starting at `path` and following the links with this `rel`.
async fn walk(who: &Actor, path: &str, rel: &str) -> Vec<Vec<u64>> {
    let mut reply = who.get(path).await.ok(200);
    let mut pages = vec![articles(&reply)];
    while let Some(next) = link(&reply, &format!("rel=\"{rel}\"")) {
        reply = who.get(&next).await.ok(200);
        pages.push(articles(&reply));
        assert!(pages.len() < 100, "an endless walk");
    }
    pages
}

#[tokio::test]
async fn a_page_has_an_article_for_each_comment_with_its_replies_inside() {
    let world = World::new();
    let (ada, bob) = (world.user(7, "Ada"), world.user(8, "<Bob>"));
    let top = ada.comment("posts/1", "**a**\nb https://a.example").await;
    let reply = bob.reply("posts/1", top, "<script>alert(1)</script>").await;
    bob.like(top).await.ok(200);
    let reply_page = page(&world.guest(), "").await;
    let html = text(&reply_page);
    assert!(html.starts_with("<!DOCTYPE html><html lang=\"en\" dir=\"ltr\">"), "{html}");
    assert!(
        html.contains("<section class=\"comment-thread\" lang=\"en\" dir=\"ltr\" aria-label=\"Comments\">"),
        "{html}"
    );
    assert_eq!(articles(&reply_page), [top, reply]);
    let (first, second) = (article(&reply_page, top), article(&reply_page, reply));
    assert!(first.starts_with(" class=\"comment\">") && second.starts_with(" class=\"comment reply\">"), "{html}");
    assert!(first.contains("<b class=\"author\" dir=\"auto\">Ada</b>"), "{first}");
    let time = format!("<a href=\"#comment-{top}\"><time datetime=\"2050-01-02T03:04:05+00:00\">2050-01-02</time></a>");
    assert!(first.contains(&time), "{first}");
    let link = "<a href=\"https://a.example\" rel=\"nofollow ugc noopener\">https://a.example</a>";
    let body = format!("<div class=\"body\" dir=\"auto\"><p><strong>a</strong><br />\nb {link}</p>\n</div>");
    assert!(first.contains(&body), "{first}");
    assert!(first.contains("<p class=\"likes\">Likes 1</p>") && !second.contains("likes"), "{html}");
    assert!(second.contains("&lt;Bob&gt;") && second.contains("&lt;script&gt;"), "{second}");
    assert!(second.trim_end().contains("</article></article>"), "the reply is inside: {second}");
}

#[tokio::test]
async fn a_fragment_is_only_the_section_of_the_thread() {
    let world = World::new();
    world.written(12).await;
    let (whole, fragment) = (page(&world.guest(), "").await, page(&world.guest(), "fragment=1").await);
    let section = text(&fragment);
    assert!(section.starts_with("<section class=\"comment-thread\"") && section.ends_with("</section>"), "{section}");
    assert!(text(&whole).contains(section), "links of a fragment lead to pages: {section}");
    for query in ["fragment=0", "fragment=", "fragment=true"] {
        assert_eq!(page(&world.guest(), query).await.body, whole.body, "{query}");
    }
}

#[tokio::test]
async fn the_links_of_pages_reach_every_comment_there_and_back() {
    let world = World::new();
    let ids = world.written(7).await;
    let newest: Vec<u64> = ids.iter().rev().copied().collect();
    for sort in ["newest", "oldest", "most_liked"] {
        let path = format!("{PAGE}?per_page=3&sort={sort}&lang=de");
        let pages = walk(&world.guest(), &path, "next").await;
        let expected = if sort == "oldest" { &ids } else { &newest };
        assert_eq!((pages.len(), &pages.concat()), (3, expected), "{sort}");
        let mut back = walk(&world.guest(), &format!("{path}&page=3"), "prev").await;
        back.reverse();
        assert_eq!(&back.concat(), expected, "{sort}, back");
        let first = world.guest().get(&path).await.ok(200);
        let next = link(&first, "rel=\"next\"").unwrap();
        let by = if sort == "most_liked" { "page=2" } else { "cursor=" };
        assert!(next.starts_with("http://api.test/svc/api/v1/posts/1/comments.html?"), "{next}");
        for kept in [by, "lang=de", "per_page=3", &format!("sort={sort}")] {
            assert!(next.contains(kept), "{next}");
        }
        assert!(text(&first).contains(&format!("<link rel=\"next\" href=\"{}\">", next.replace('&', "&amp;"))));
    }
    let second = page(&world.guest(), "per_page=3&page=2").await;
    let next = link(&second, "rel=\"next\"").unwrap();
    assert!(next.contains("cursor=") && !next.contains("page=2"), "{next}");
    assert_eq!(articles(&world.guest().get(&next).await.ok(200)), newest[6..]);
}

#[tokio::test]
async fn a_pinned_comment_comes_first_and_once() {
    let world = World::new();
    let ids = world.written(7).await;
    world.moderator().pin(ids[1]).await.ok(200);
    world.wait_until_idle().await;
    let expected = [ids[1], ids[6], ids[5], ids[4], ids[3], ids[2], ids[0]];
    for query in ["per_page=2", "per_page=3"] {
        assert_eq!(walk(&world.guest(), &format!("{PAGE}?{query}"), "next").await.concat(), expected, "{query}");
        let mut back = walk(&world.guest(), &format!("{PAGE}?{query}&page=3"), "prev").await;
        back.reverse();
        assert_eq!(back.concat()[..4], expected[..4], "{query}, back");
    }
    let first = article(&page(&world.guest(), "").await, ids[1]);
    assert!(
        first.starts_with(" class=\"comment pinned\">") && first.contains("<span class=\"label\">Pinned</span>"),
        "{first}"
    );
}

#[tokio::test]
async fn replies_that_are_not_shown_have_a_separate_page() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let top = ada.comment("posts/1", "top").await;
    let replies = ada.write_many("posts/1", top, 5).await;
    let below = ada.reply("posts/1", replies[0], "below").await;
    let whole = page(&world.guest(), "lang=en&sort=newest&per_page=2").await;
    assert_eq!(articles(&whole), [vec![top], replies[..3].to_vec()].concat());
    assert!(article(&whole, replies[0]).contains(&format!("parent={}", replies[0])), "{}", text(&whole));
    let lead = link(&whole, "class=\"replies\"").unwrap();
    assert_eq!(articles(&world.guest().get(&lead).await.ok(200)), [replies[0], below]);
    assert!(
        text(&whole).contains(">2 more replies</a>") && text(&whole).contains(">1 more reply</a>"),
        "{}",
        text(&whole)
    );

    let path = format!("{PAGE}?parent={top}&per_page=2&sort=most_liked");
    let pages = walk(&world.guest(), &path, "next").await;
    assert_eq!(pages, [vec![top, replies[0], replies[1]], vec![top, replies[2], replies[3]], vec![top, replies[4]]]);
    let first = world.guest().get(&path).await.ok(200);
    assert!(link(&first, "class=\"replies\"").unwrap().contains(&format!("parent={}", replies[0])));
    for missing in ["1", "x", "", &(u64::MAX >> 11).to_string()] {
        world.guest().get(&format!("{PAGE}?parent={missing}")).await.refused(404, "not_found");
    }
    world.guest().get(&format!("posts/2/comments.html?parent={top}")).await.refused(404, "not_found");
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]).user(7, "Ada").comment("posts/1", "held").await;
    ada.get(&format!("{PAGE}?parent={held}")).await.refused(404, "not_found");
}

#[tokio::test]
async fn labels_mark_edited_official_and_deleted_comments() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    moderator
        .put("posts/1", json!({ "author_id": 7, "title": "A \"walk\"", "url": "https://www.example.org/a?b&c" }))
        .await
        .ok(200);
    let edited = ada.comment("posts/1", "x").await;
    world.pass(std::time::Duration::from_secs(2));
    ada.edit(edited, "y").await.ok(200);
    let official = moderator.comment("posts/1", "z").await;
    let gone = ada.comment("posts/1", "gone").await;
    ada.reply("posts/1", gone, "stays").await;
    ada.remove(gone).await.ok(204);
    world.wait_until_idle().await;
    let german = page(&world.guest(), "lang=de-AT").await;
    let of = |id| article(&german, id);
    assert!(of(edited).contains(">Bearbeitet<") && of(official).contains(">Moderator<"), "{}", text(&german));
    assert!(of(gone).starts_with(" class=\"comment deleted\"><p>Dieser Kommentar wurde gelöscht</p>"), "{}", of(gone));
    assert!(text(&german).contains("<title>A &quot;walk&quot;</title>"), "{}", text(&german));
    assert!(
        text(&german).contains("<link rel=\"canonical\" href=\"https://www.example.org/a?b&amp;c\">"),
        "{}",
        text(&german)
    );
    let later = page(&world.guest(), "per_page=1&page=2").await;
    assert!(!text(&later).contains("canonical"));
    let plain = world.again(&[("SVC_BADGES", "false")]).guest();
    assert!(!article(&page(&plain, "").await, official).contains("label"));
}

#[tokio::test]
async fn the_page_of_an_empty_thread_says_that_there_are_no_comments() {
    let world = World::new();
    let empty = page(&world.guest(), "").await;
    assert!(
        text(&empty).contains("<title>Comments</title>") && text(&empty).contains("No comments yet"),
        "{}",
        text(&empty)
    );
    assert!(text(&page(&world.guest(), "page=99").await).contains("No comments yet"));
    for path in ["pages/1/comments.html", "posts/a%20b/comments.html"] {
        world.guest().get(path).await.refused(404, "not_found");
    }
    world.guest().get(&format!("{PAGE}?per_page=51")).await.invalid("per_page");
    world.guest().get(&format!("{PAGE}?sort=best")).await.invalid("sort");
    world.guest().get(&format!("{PAGE}?cursor=x")).await.invalid("cursor");
}

#[tokio::test]
async fn a_page_beyond_the_last_leads_back_and_does_not_say_that_the_thread_is_empty() {
    let world = World::new();
    let mut ids = world.written(3).await;
    ids.reverse();
    for sort in ["newest", "most_liked"] {
        let beyond = page(&world.guest(), &format!("sort={sort}&page=99")).await;
        assert!(articles(&beyond).is_empty() && !text(&beyond).contains("No comments yet"), "{}", text(&beyond));
        let back = link(&beyond, "rel=\"prev\"").expect("a link to the last page");
        assert_eq!(articles(&world.guest().get(&back).await.ok(200)), ids, "{sort}");
    }
}

#[tokio::test]
async fn a_page_is_the_same_for_everyone_runs_nothing_and_may_be_kept_and_framed() {
    let world = World::new();
    world.written(3).await;
    let plain = page(&world.guest(), "per_page=2").await;
    let control = "public, max-age=0, s-maxage=60, stale-while-revalidate=240, stale-if-error=86400";
    assert_eq!((plain.header("cache-control"), plain.header("vary")), (control, "Accept-Encoding"));
    assert_eq!((plain.header("content-type"), plain.header("content-language")), ("text/html; charset=utf-8", "en"));
    let policy = plain.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; img-src http: https:; style-src 'sha256-"), "{policy}");
    assert!(policy.ends_with("'; base-uri 'none'; form-action 'none'"), "{policy}");
    assert!(!plain.headers.contains_key("x-frame-options") && !plain.headers.contains_key("last-modified"));
    for inline in ["<script", "<form", "<img", " style=", " on"] {
        assert!(!text(&plain).split("</style>").nth(1).unwrap().contains(inline), "{inline}");
    }
    let guest = world.guest();
    for other in [
        world.user(7, "Ada"),
        world.moderator(),
        guest.clone().with_token("bad"),
        guest.clone().with_key("guest"),
        guest.clone().with(COOKIE, "session=1"),
        guest.clone().with(ACCEPT_LANGUAGE, "de"),
    ] {
        for query in ["per_page=2", "per_page=2&mine=1", "newest=1&per_page=2", "include=all&per_page=2"] {
            let reply = page(&other, query).await;
            assert_eq!((&reply.body, reply.header("cache-control")), (&plain.body, control), "{query}");
            assert!(!reply.headers.contains_key("set-cookie"));
        }
    }
    guest.with(IF_NONE_MATCH, plain.header("etag")).get(&format!("{PAGE}?per_page=2")).await.ok(304);
}
