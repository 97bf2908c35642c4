//! `feed`: the newest comments of a thread as Atom.

use std::time::Duration;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use serde_json::json;
use tests::{Actor, Item, TABLE, World, by_guest};

use crate::capacity::metered;

#[derive(Debug)]
struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
}

type Elements = Vec<Element>;

#[derive(Debug, Default)]
struct Feed {
    head: Elements,
    entries: Vec<Elements>,
}

fn attributes(start: &BytesStart<'_>) -> Vec<(String, String)> {
    let attributes = start.attributes().map(|attribute| {
        let attribute = attribute.unwrap();
        let value = quick_xml::escape::unescape(std::str::from_utf8(&attribute.value).unwrap()).unwrap().into_owned();
        (String::from_utf8(attribute.key.0.to_vec()).unwrap(), value)
    });
    attributes.collect()
}

fn element(start: &BytesStart<'_>) -> Element {
    let name = String::from_utf8(start.name().0.to_vec()).unwrap();
    Element { name, attributes: attributes(start), text: String::new() }
}

impl Feed {
    /// Fails unless the document is well-formed.
    fn parse(document: &str) -> Self {
        let forbidden = |c: &char| (*c < ' ' && !"\t\n\r".contains(*c)) || ('\u{fffe}'..='\u{ffff}').contains(c);
        assert_eq!(document.chars().find(forbidden), None);
        let mut reader = Reader::from_str(document);
        let (mut feed, mut open) = (Self::default(), Vec::<Element>::new());
        loop {
            match reader.read_event().unwrap() {
                Event::Start(start) if start.name().0 == b"entry" => feed.entries.push(Vec::new()),
                Event::Start(start) if start.name().0 == b"feed" => {
                    assert_eq!(attributes(&start), [("xmlns".to_owned(), "http://www.w3.org/2005/Atom".to_owned())]);
                }
                Event::Start(start) => open.push(element(&start)),
                Event::Empty(start) => feed.add(element(&start)),
                Event::End(end) if [&b"entry"[..], b"feed"].contains(&end.name().0) => assert!(open.is_empty()),
                Event::End(_) => {
                    let element = open.pop().unwrap();
                    feed.add(element);
                }
                Event::Text(text) => feed.append(&mut open, &text.decode().unwrap()),
                Event::GeneralRef(reference) => {
                    let text = format!("&{};", reference.decode().unwrap());
                    feed.append(&mut open, &quick_xml::escape::unescape(&text).unwrap());
                }
                Event::Decl(_) => {}
                Event::Eof => return feed,
                other => panic!("{other:?}"),
            }
        }
    }

    fn add(&mut self, element: Element) {
        self.entries.last_mut().unwrap_or(&mut self.head).push(element);
    }

    fn append(&mut self, open: &mut [Element], text: &str) {
        match open.last_mut() {
            Some(element) => element.text.push_str(text),
            None => assert!(text.trim().is_empty(), "{text} after {:?}", self.head.last()),
        }
    }

    async fn of(world: &World, actor: &Actor) -> Self {
        world.wait_until_idle().await;
        let reply = actor.get("posts/1/feed.atom").await.ok(200);
        assert_eq!(reply.header("content-type"), "application/atom+xml; charset=utf-8");
        Self::parse(reply.json.as_str().unwrap())
    }

    fn contents(&self) -> Vec<&str> {
        self.entries.iter().map(|entry| text(entry, "content")).collect()
    }
}

fn find<'a>(elements: &'a [Element], name: &str) -> &'a Element {
    let mut found = elements.iter().filter(|element| element.name == name);
    let element = found.next().unwrap_or_else(|| panic!("no {name} in {elements:?}"));
    assert!(found.next().is_none(), "a second {name} in {elements:?}");
    element
}

fn text<'a>(elements: &'a [Element], name: &str) -> &'a str {
    &find(elements, name).text
}

fn link<'a>(elements: &'a [Element], relation: &str) -> Option<&'a str> {
    let attribute = |element: &'a Element, name: &str| {
        element.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    };
    let mut links = elements.iter().filter(|element| element.name == "link");
    links.find(|element| attribute(element, "rel") == Some(relation)).and_then(|element| attribute(element, "href"))
}

const BASE: &str = "http://api.test/svc/api/v1";

#[tokio::test]
async fn a_feed_has_what_atom_requires() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let id = ada.comment("posts/1", "Hi **all**").await;
    let feed = Feed::of(&world, &world.guest()).await;
    let address = format!("{BASE}/posts/1/feed.atom");
    assert_eq!((text(&feed.head, "id"), link(&feed.head, "self")), (address.as_str(), Some(address.as_str())));
    assert_eq!(text(&feed.head, "title"), "Comments on posts/1");
    assert_eq!(text(&feed.head, "updated"), "2050-01-02T03:04:05Z");
    assert_eq!(link(&feed.head, "alternate"), None);

    let [entry] = feed.entries.as_slice() else { panic!("{feed:?}") };
    let address = format!("{BASE}/comments/{id}");
    assert_eq!((text(entry, "id"), link(entry, "alternate")), (address.as_str(), Some(address.as_str())));
    assert_eq!((text(entry, "title"), text(entry, "name")), ("Ada", "Ada"));
    assert_eq!((text(entry, "published"), text(entry, "updated")), ("2050-01-02T03:04:05Z", "2050-01-02T03:04:05Z"));
    assert_eq!(text(entry, "content"), "<p>Hi <strong>all</strong></p>\n");
    assert_eq!(find(entry, "content").attributes[0], ("type".to_owned(), "html".to_owned()));
    assert_eq!(ada.get(link(entry, "alternate").unwrap()).await.ok(200).id(), id);
}

#[tokio::test]
async fn links_lead_to_the_page_that_the_host_has_named() {
    let world = World::new();
    let id = world.user(7, "Ada").comment("posts/1", "x").await;
    for (url, page) in [
        ("https://example.org/1?a=b&c=d", "https://example.org/1?a=b&c=d"),
        ("https://example.org/1#top", "https://example.org/1"),
    ] {
        let record = json!({ "title": "On <threads> & \"more\"", "url": url });
        world.moderator().put("posts/1", record).await.ok(200);
        let feed = Feed::of(&world, &world.guest()).await;
        assert_eq!(text(&feed.head, "title"), "Comments on On <threads> & \"more\"");
        assert_eq!(link(&feed.head, "alternate"), Some(url));
        assert_eq!(link(&feed.entries[0], "alternate"), Some(format!("{page}#comment-{id}").as_str()));
        assert_eq!(text(&feed.entries[0], "id"), format!("{BASE}/comments/{id}"));
    }
}

#[tokio::test]
async fn a_feed_has_the_newest_20_comments_and_replies_newest_first() {
    let world = World::new();
    let parents = world.written(22).await;
    let ada = world.user(7, "Ada");
    let reply = ada.reply("posts/1", parents[0], "reply").await;
    ada.edit(parents[21], "edited").await.ok(200);
    let feed = Feed::of(&world, &world.guest()).await;
    let expected: Vec<String> =
        (3..22).rev().map(|n| if n == 21 { "edited".to_owned() } else { n.to_string() }).collect();
    let mut contents = feed.contents();
    assert_eq!(contents.remove(0), "<p>reply</p>\n");
    assert_eq!(contents, expected.iter().map(|body| format!("<p>{body}</p>\n")).collect::<Vec<_>>());
    assert_eq!(text(&feed.entries[0], "id"), format!("{BASE}/comments/{reply}"));
}

#[tokio::test]
async fn an_edit_moves_the_time_of_its_entry_and_of_the_feed() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let first = ada.comment("posts/1", "first").await;
    world.pass(Duration::from_mins(1));
    ada.comment("posts/1", "second").await;
    world.pass(Duration::from_mins(1));
    ada.edit(first, "edited").await.ok(200);
    let feed = Feed::of(&world, &world.guest()).await;
    assert_eq!(text(&feed.head, "updated"), "2050-01-02T03:06:05Z");
    let times = |entry: &Elements| [text(entry, "published").to_owned(), text(entry, "updated").to_owned()];
    assert_eq!(times(&feed.entries[0]), ["2050-01-02T03:05:05Z"; 2]);
    assert_eq!(times(&feed.entries[1]), ["2050-01-02T03:04:05Z", "2050-01-02T03:06:05Z"]);
}

#[tokio::test]
async fn an_empty_feed_was_updated_in_1970() {
    let world = World::new();
    let feed = Feed::of(&world, &world.guest()).await;
    assert_eq!((text(&feed.head, "updated"), feed.entries.len()), ("1970-01-01T00:00:00Z", 0));
}

#[tokio::test]
async fn hidden_comments_are_not_in_the_feed() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let top = ada.comment("posts/1", "top").await;
    ada.reply("posts/1", top, "below").await;
    ada.comment("posts/1", "other").await;
    world.again(&[("SVC_REQUIRE_APPROVAL", "true")]).user(7, "Ada").comment("posts/1", "held").await;
    let rejected = ada.comment("posts/1", "rejected").await;
    world.wait_until_idle().await;
    moderator.judge(rejected, "reject").await.ok(200);
    moderator.judge(top, "reject").await.ok(200);
    // The feed omits a rejected comment even for its writer, and even before `events` handles the rejection.
    let feed = Feed::parse(ada.get("posts/1/feed.atom").await.ok(200).json.as_str().unwrap());
    assert!(!feed.contents().contains(&"<p>rejected</p>\n") && !feed.contents().contains(&"<p>top</p>\n"));
    assert_eq!(Feed::of(&world, &ada).await.contents(), ["<p>other</p>\n"]);
}

#[tokio::test]
async fn placeholders_and_replies_below_a_hidden_comment_are_not_in_the_feed_even_while_still_counted() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let (top, gone) = (ada.comment("posts/1", "top").await, ada.comment("posts/1", "gone").await);
    let below = ada.reply("posts/1", top, "below").await;
    ada.reply("posts/1", below, "deeper").await;
    let orphan = ada.reply("posts/1", gone, "orphan").await;
    let placeholder = ada.comment("posts/1", "erased").await;
    ada.reply("posts/1", placeholder, "kept").await;
    world.wait_until_idle().await;
    let has = |item: &Item, name: &str, text: &str| item[name].as_s().is_ok_and(|key| key.starts_with(text));
    let is_walked = |item: &Item| has(item, "sk", "K#") || has(item, "pk", &format!("C#{orphan}"));
    let walked: Vec<Item> = world.items().await.into_iter().filter(is_walked).collect();

    for id in [top, orphan] {
        moderator.judge(id, "reject").await.ok(200);
    }
    ada.remove(gone).await.ok(204);
    ada.remove(placeholder).await.ok(204);
    world.finish_jobs().await;
    // Restores the items as they were before jobs stopped counting the replies and removed them.
    for item in walked {
        world.client().put_item().table_name(TABLE).set_item(Some(item)).send().await.unwrap();
    }
    let feed = Feed::parse(ada.get("posts/1/feed.atom").await.ok(200).json.as_str().unwrap());
    assert_eq!(feed.contents(), ["<p>kept</p>\n"]);
}

#[tokio::test]
async fn hostile_names_titles_and_bodies_leave_the_feed_well_formed() {
    let world = World::with(&[("SVC_ALLOW_GUESTS", "true")]);
    let hostile = "]]></title><script>alert(1)</script>&amp;&#0;\u{1}\u{8}\u{b}\u{1f}\u{fffe}\u{ffff}<!-- \"'>";
    let shown = "]]></title><script>alert(1)</script>&amp;&#0;<!-- \"'>";
    let url = "https://example.org/?a='b'&c=&lt;";
    let title = hostile.replace(char::is_control, "");
    world.moderator().put("posts/1", json!({ "title": title, "url": url })).await.ok(200);
    let named = world.user(7, hostile);
    let guest = world.guest();
    let mut comment = by_guest(&format!("```\n{hostile}\n```"));
    comment["guest_name"] = json!("</name><b> & \"Grace\"");
    for n in 0..3 {
        named.comment("posts/1", &format!("{n} {hostile}\r\n\r\n\ttext")).await;
    }
    guest.post("posts/1/comments", comment).await.ok(201);
    let feed = Feed::of(&world, &guest).await;
    assert_eq!(text(&feed.head, "title"), format!("Comments on {shown}"));
    assert_eq!(link(&feed.head, "alternate"), Some(url));
    assert_eq!(text(&feed.entries[0], "title"), "</name><b> & \"Grace\"");
    assert!(text(&feed.entries[1], "name").starts_with("]]></title><script>"), "{feed:?}");
    assert_eq!(feed.entries.len(), 4);
    let list = guest.list("posts/1", "").await;
    for (entry, row) in feed.entries.iter().zip(list.rows()) {
        let html: String = row["html"].as_str().unwrap().to_owned();
        let allowed = |c: &char| (*c >= ' ' || "\t\n\r".contains(*c)) && !('\u{fffe}'..='\u{ffff}').contains(c);
        assert_eq!(text(entry, "content"), html.chars().filter(allowed).collect::<String>());
    }
}

#[tokio::test]
async fn a_feed_of_the_longest_comments_is_complete() {
    for body in ["&\"<".repeat(3_333), "😀".repeat(10_000), format!("a\n{}", "#\n".repeat(4_999))] {
        let world = metered(&[]);
        let ada = world.user(7, "Ada");
        for _ in 0..20 {
            ada.comment("posts/1", &body).await;
        }
        assert_eq!(Feed::of(&world, &ada).await.entries.len(), 20);
        // Each comment is up to 40 KB.
        let cost = world.guest().get("posts/1/feed.atom").await.ok(200).cost;
        assert!(cost.read_units <= 111.0 && cost.trips <= 2, "{cost:?}");
    }
}

#[tokio::test]
async fn feeds_are_in_english_and_can_be_turned_off() {
    let world = World::new();
    let german = world.guest().with(http::header::ACCEPT_LANGUAGE, "de");
    assert!(text(&Feed::of(&world, &german).await.head, "title").starts_with("Comments on"));
    let off = world.again(&[("SVC_FEEDS", "false")]).guest();
    off.get("posts/1/feed.atom").await.refused(404, "not_found");
    off.get("posts/1/changes").await.ok(200);
}
