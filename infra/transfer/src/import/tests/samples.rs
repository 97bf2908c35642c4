//! Imports a file of each format into a table.

use shared::domain::avatar::Avatar;
use shared::domain::ids::UserId;

use super::super::format::tests::samples;
use super::*;
use crate::store::restore::restore_users;

fn import_of(format: Format, path: &Path) -> Import {
    let mut import = Import::new(format, vec![path.to_owned()]);
    import.keys.kind = "posts".to_owned();
    import
}

/// Imports as the command does.
async fn run(store: &Store, import: &Import) -> Report {
    let directory = tempfile::tempdir().unwrap();
    let mut staging = import.read(directory.path(), |_| ()).unwrap();
    let mut importer = Importer { prefix: import.format.name(), ..importer(store, &mut staging, &import.users) };
    importer.run(&mut |_| ()).await.unwrap();
    let report = staging.report();
    let (skipped, refused) = (report.skipped.values().sum::<u64>(), report.refused.len() as u64);
    assert_eq!(report.read, report.new + report.already_there + skipped + refused);
    assert_eq!(report.threads.values().sum::<u64>(), report.new + report.already_there);
    report
}

/// The expected report about a format's sample, on one line.
fn expected(format: Format) -> &'static str {
    match format {
        Format::Native => "refused 1 as time: 3; posts/1: 2; 3 read: 2 new, 0 already there, 0 skipped, 1 refused",
        Format::Disqus => {
            "refused 1 as time: 1006; posts/2020:hello: 3; 6 read: 3 new, 0 already there, 2 skipped (deleted 1, spam 1), 1 refused"
        }
        Format::Wordpress => {
            "refused 1 as time: 7; posts/18: 3; posts/4: 1; posts/about: 1; \
             10 read: 5 new, 0 already there, 4 skipped (pingback 1, spam 1, trash 1, type 1), 1 refused"
        }
        Format::Isso => {
            "refused 1 as time: 4; posts/2014:test: 2; 4 read: 2 new, 0 already there, 1 skipped (deleted 1), 1 refused"
        }
        Format::Remark42 => {
            "refused 1 as time: a4; posts/demo: 2; 4 read: 2 new, 0 already there, 1 skipped (deleted 1), 1 refused"
        }
        Format::Commento => "posts/post:first: 3; 4 read: 3 new, 0 already there, 1 skipped (deleted 1), 0 refused",
        Format::Comentario => {
            "refused 1 as time: k5; posts/post: 3; 5 read: 3 new, 0 already there, 1 skipped (deleted 1), 1 refused"
        }
        Format::Artalk => "posts/test:1000.html: 2; 2 read: 2 new, 0 already there, 0 skipped, 0 refused",
        Format::Waline => "posts/a: 4; 5 read: 4 new, 0 already there, 1 skipped (spam 1), 0 refused",
        Format::Giscus => {
            "posts/posts:hello: 2; 4 read: 2 new, 0 already there, 2 skipped (deleted 1, spam 1), 0 refused"
        }
    }
}

#[tokio::test]
async fn every_format_is_imported_once_with_everything_reported() {
    let directory = tempfile::tempdir().unwrap();
    for (format, content) in samples() {
        let path = directory.path().join(format.name());
        std::fs::write(&path, content).unwrap();
        let store = store();
        let first = run(&store, &import_of(format, &path)).await;
        assert_eq!(first.to_string().trim_end().replace('\n', "; "), expected(format), "{format:?}");
        assert_eq!(findings(&store).await, [""; 0], "{format:?}");
        let again = run(&store, &import_of(format, &path)).await;
        assert_eq!((again.new, again.already_there), (0, first.new), "{format:?}");
        assert_eq!((&again.skipped, &again.refused), (&first.skipped, &first.refused), "{format:?}");
        assert_eq!(findings(&store).await, [""; 0], "{format:?}");
    }
}

#[tokio::test]
async fn a_comment_without_an_id_is_imported_once_whatever_the_zone() {
    let directory = tempfile::tempdir().unwrap();
    for (format, source) in [
        (
            Format::Disqus,
            "<disqus><thread id='1'><link>/a</link></thread><post><thread id='1'/><message>x</message>\
             <createdAt>2020-01-02T03:04:05</createdAt></post></disqus>",
        ),
        (
            Format::Wordpress,
            "<rss><channel><item><link>/a</link><comment><comment_content>x</comment_content>\
             <comment_date>2020-01-02 03:04:05</comment_date><comment_date_gmt>0000-00-00 00:00:00</comment_date_gmt>\
             </comment></item></channel></rss>",
        ),
        (Format::Remark42, r#"{"locator":{"url":"/a"},"orig":"x","time":"2020-01-02T03:04:05"}"#),
        (Format::Commento, r#"{"comments":[{"url":"/a","markdown":"x","creationDate":"2020-01-02T03:04:05"}]}"#),
        (
            Format::Comentario,
            r#"{"pages":[{"id":"p","path":"/a"}],"comments":[{"pageId":"p","markdown":"x","createdTime":"2020-01-02T03:04:05"}]}"#,
        ),
        (Format::Artalk, r#"[{"page_key":"/a","content":"x","created_at":"2020-01-02 03:04:05"}]"#),
        (Format::Waline, r#"[{"url":"/a","comment":"x","insertedAt":"2020-01-02 03:04:05"}]"#),
    ] {
        let path = directory.path().join(format.name());
        std::fs::write(&path, source).unwrap();
        let store = store();
        let mut import = import_of(format, &path);
        assert_eq!(run(&store, &import).await.new, 1, "{format:?}");
        import.zone = TimeZone::get("Asia/Tokyo").unwrap();
        let again = run(&store, &import).await;
        assert_eq!((again.new, again.already_there), (0, 1), "{format:?}");
    }
}

#[tokio::test]
async fn unwanted_comments_that_are_kept_are_rejected_and_not_queued() {
    let directory = tempfile::tempdir().unwrap();
    for (format, kept) in [(Format::Wordpress, 3), (Format::Disqus, 1), (Format::Waline, 1), (Format::Giscus, 1)] {
        let content = samples().into_iter().find(|(other, _)| *other == format).unwrap().1;
        let path = directory.path().join(format.name());
        std::fs::write(&path, content).unwrap();
        let (store, skipping) = (store(), super::store());
        let import = Import { keep_spam: true, ..import_of(format, &path) };
        let without = run(&skipping, &import_of(format, &path)).await;
        assert_eq!(run(&store, &import).await.new, without.new + kept, "{format:?}");
        assert_eq!(findings(&store).await, [""; 0], "{format:?}");
    }
}

/// Ada has signed in with a name and a picture, Bob's item has only a ban, and Eve has no item.
#[tokio::test]
async fn comments_of_users_get_the_name_and_picture_of_the_profile_at_once() {
    let store = store();
    let profile = |id: u64, name: &str, picture: &str| {
        serde_json::from_value(serde_json::json!({ "u": id, "n": name, "av": picture })).unwrap()
    };
    restore_users(&store, &[profile(7, "Ada Lovelace", "https://pictures.example/ada.png"), profile(8, "", "")])
        .await
        .unwrap();
    let author = |user: u64| Author { user_id: Some(user), ..Author::default() };
    let by = |id: &str, author: Author| Comment { author, ..comment(id) };
    let named = Author { name: "Ada".into(), email: "ada@blog.example".into(), ..Author::default() };
    let dump = [
        by("1", author(7)),
        by("2", Author { name: "Bob".into(), ..author(8) }),
        by("3", author(9)),
        by("4", named.clone()),
        Comment { author: named, state: RecordState::Pending, ..reply("5", "1") },
    ];
    let users = Users::parse("ada@blog.example 7").unwrap();
    // In the second round the thread already has comments.
    for dump in [&dump[..4], &dump[..]] {
        let mut staging = staging(&store, dump).await;
        importer(&store, &mut staging, &users).run(&mut |_| ()).await.unwrap();
    }
    let ada = (Some(UserId(7)), "Ada Lovelace", Avatar::Picture("https://pictures.example/ada.png".into()));
    for (id, expected) in [
        ("1", ada.clone()),
        ("2", (Some(UserId(8)), "Bob", Avatar::Neutral)),
        ("3", (Some(UserId(9)), "Anonymous", Avatar::Neutral)),
        ("4", ada.clone()),
        ("5", ada),
    ] {
        let stored = find(&store, &dump, id).await.unwrap();
        assert_eq!((stored.user, stored.name.as_str(), stored.avatar), expected, "{id}");
    }
    assert_eq!(findings(&store).await, [""; 0]);
}

#[tokio::test]
async fn a_thread_with_comments_gains_the_pin_unless_it_has_one() {
    let store = store();
    let pin = async || store.thread(&thread("a"), Reading::Consistent).await.unwrap().pin.map(|pin| pin.comment);
    write_live(&store, None).await;
    let pinned = |id: &str| Comment { pinned: true, ..comment(id) };
    let first = [
        Comment { pinned: true, ..reply("3", "2") },
        Comment { state: RecordState::Pending, ..pinned("1") },
        pinned("2"),
    ];
    import(&store, &first).await;
    let kept = find(&store, &first, "2").await.unwrap().id;
    assert_eq!(pin().await, Some(kept));
    import(&store, &[&first[..], &[pinned("4")]].concat()).await;
    assert_eq!(pin().await, Some(kept));
    assert_eq!(findings(&store).await, [""; 0]);
    // A comment that a moderator unpinned isn't pinned again.
    let clock = Clock::system();
    let ids = IdSource::new(clock.clone(), Random::system());
    let by = shared::store::log::By { id: UserId(1), name: "Mod", ids: &ids, clock: &clock };
    store.unpin(&find(&store, &first, "2").await.unwrap(), by).await.unwrap();
    import(&store, &[&first[..], &[comment("5")]].concat()).await;
    assert_eq!(pin().await, None);
}

#[tokio::test]
async fn an_excessive_value_or_count_is_refused_with_its_reason() {
    let store = store();
    let comments = [
        Comment { is_oversized: true, ..comment("1") },
        Comment { likes: (1 << 53) + 1, ..comment("2") },
        Comment { likes: 1 << 53, ..comment("3") },
    ];
    let report = import(&store, &comments).await;
    let refused: Vec<_> = report.refused.iter().map(|entry| (entry.id.as_str(), entry.reason.as_str())).collect();
    assert_eq!((refused, report.new), (vec![("1", "size"), ("2", "likes")], 1));
    assert_eq!(findings(&store).await, [""; 0]);
}

#[tokio::test]
async fn bodies_that_are_not_shown_whole_are_reported_as_cut() {
    let body = |id: &str, body: String| Comment { body, ..comment(id) };
    let long = [
        body("1", "a quiet morning ".repeat(4_000)),
        body("2", "[a](b)".repeat(9_000)),
        body("3", "&&&&& ".repeat(9_000)),
        body("4", "é".repeat(40_000)),
    ];
    let report = import(&store(), &long).await;
    assert_eq!((report.new, report.cut), (4, vec!["3".to_owned(), "4".to_owned()]));
}

#[test]
fn a_time_more_than_five_minutes_ahead_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("dump.jsonl");
    let comment = |id: u32, time: &str| {
        let comment =
            serde_json::json!({ "source_id": id.to_string(), "thread": "/a", "created_at": time, "body": "x" });
        serde_json::json!({ "comment": comment }).to_string()
    };
    let page = r#"{"thread":{"key":"/a","url":"/a"}}"#.to_owned();
    let lines = [
        page,
        comment(1, "2026-03-01T00:05:00Z"),
        comment(2, "2026-03-01T00:05:01Z"),
        comment(3, "2040-01-01T00:00:00Z"),
    ];
    std::fs::write(&path, lines.join("\n")).unwrap();
    let now = shared::domain::time::Timestamp::parse("2026-03-01T00:00:00Z").unwrap();
    let import = Import { clock: Clock::new(move || now), ..import_of(Format::Native, &path) };
    let report = import.read(directory.path(), |_| ()).unwrap().report();
    let refused: Vec<_> = report.refused.iter().map(|entry| (entry.id.as_str(), entry.reason.as_str())).collect();
    assert_eq!((refused, report.new), (vec![("2", "time"), ("3", "time")], 1));
}

#[tokio::test]
async fn a_time_outside_the_range_of_ids_is_refused() {
    let store = store();
    let at = |id: &str, time: &str| Comment { created_at: time.parse().ok(), ..comment(id) };
    let report =
        import(&store, &[at("1", "9000-01-01T00:00:00Z"), at("2", "2020-01-01T00:00:00Z"), reply("3", "1")]).await;
    let refused: Vec<_> = report.refused.iter().map(|entry| (entry.id.as_str(), entry.reason.as_str())).collect();
    assert_eq!((refused, report.new), (vec![("1", "time")], 2));
    assert_eq!(findings(&store).await, [""; 0]);
}
