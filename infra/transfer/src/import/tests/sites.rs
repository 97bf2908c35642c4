//! The identity of a comment: its format, its site, and its id on that site.

use shared::domain::ids::{SourceId, UserId};
use shared::domain::person::{Person, PersonHashes, Who};
use shared::domain::secret::Secret;

use super::*;
use crate::store::person::erase::Erasure;
use crate::store::person::find::identify;
use crate::store::person::forgotten::begin_erasure;
use crate::store::person::{find, forgotten};

/// The comments of another site, with the same ids but other writers and another page.
fn other_site() -> Vec<Comment> {
    let bob = || Author { name: "Bob".to_owned(), ..Author::default() };
    let other = |comment: Comment| Comment { thread: "/b".to_owned(), author: bob(), ..comment };
    vec![other(comment("1")), other(reply("2", "1")), other(comment("3"))]
}

fn this_site() -> Vec<Comment> {
    vec![comment("1"), reply("2", "1"), comment("3")]
}

fn refused(report: &Report) -> Vec<(&str, &str)> {
    report.refused.iter().map(|entry| (entry.id.as_str(), entry.reason.as_str())).collect()
}

fn in_another_zone(comments: &[Comment]) -> Vec<Comment> {
    let later = |at: Timestamp| at.checked_add(std::time::Duration::from_hours(9)).unwrap();
    comments.iter().map(|comment| Comment { created_at: comment.created_at.map(later), ..comment.clone() }).collect()
}

#[tokio::test]
async fn the_same_file_in_another_zone_adds_nothing() {
    let store = store();
    import(&store, &dump()).await;
    let deleted = find(&store, &dump(), "3").await.unwrap();
    delete(&store, &deleted).await;
    let again = import(&store, &in_another_zone(&dump())).await;
    assert_eq!((again.new, again.already_there), (0, 18));
    assert_eq!(again.skipped, [("deleted".to_owned(), 1)].into());
    assert_eq!(findings(&store).await, [""; 0]);
    let kept = find(&store, &dump(), "2").await.unwrap();
    assert_eq!(kept.id.created_at().0, 1_600_000_000_000, "as it was imported");
}

#[tokio::test]
async fn a_new_reply_imported_with_another_zone_is_below_its_existing_parent() {
    let store = store();
    import(&store, &this_site()).await;
    let more = in_another_zone(&[this_site(), vec![reply("4", "1")]].concat());
    let report = import(&store, &more).await;
    assert_eq!((report.new, report.already_there), (1, 3));
    let stored = find(&store, &more, "4").await.unwrap();
    assert_eq!(stored.ancestors, [find(&store, &this_site(), "1").await.unwrap().id]);
    assert_eq!(findings(&store).await, [""; 0]);
}

#[tokio::test]
async fn two_sites_with_the_same_ids_are_both_imported() {
    let store = store();
    for (prefix, comments) in [("test", this_site()), ("test@b", other_site())] {
        let first = import_of(&store, prefix, &[&comments]).await;
        assert_eq!((first.new, first.read, first.refused.len()), (3, 3, 0), "{prefix}");
        let again = import_of(&store, prefix, &[&comments]).await;
        assert_eq!((again.new, again.already_there), (0, 3), "{prefix}");
    }
    assert_eq!(store.thread(&thread("a"), Reading::Consistent).await.unwrap().parents, 2);
    assert_eq!(store.thread(&thread("b"), Reading::Consistent).await.unwrap().parents, 2);
    assert_eq!(findings(&store).await, [""; 0]);
}

#[tokio::test]
async fn a_comment_that_is_deleted_on_one_site_stays_on_the_other() {
    let store = store();
    import_of(&store, "test@a", &[&this_site()]).await;
    let staging = staging_of(&store, "test@a", &[&this_site()]).await;
    let id = placed(&staging, "posts/a").last().unwrap().id;
    let leaf = store.comment_with_ancestors(id, Reading::Consistent).await.unwrap().unwrap().comment;
    delete(&store, &leaf).await;
    let other = import_of(&store, "test@b", &[&other_site()]).await;
    assert_eq!((other.new, &other.skipped), (3, &[].into()));
    let again = import_of(&store, "test@a", &[&this_site()]).await;
    assert_eq!((again.new, again.already_there, &again.skipped), (0, 2, &[("deleted".to_owned(), 1)].into()));
    assert_eq!(findings(&store).await, [""; 0]);
}

#[tokio::test]
async fn comments_from_another_site_are_refused_and_not_mistaken_for_existing_or_deleted_ones() {
    let store = store();
    import(&store, &this_site()).await;
    delete(&store, &find(&store, &this_site(), "3").await.unwrap()).await;
    let below = Comment { parent: Some("1".to_owned()), ..other_site()[2].clone() };
    let below = Comment { source_id: "9".to_owned(), ..below };
    let other = [other_site(), vec![below]].concat();
    let report = import(&store, &other).await;
    assert_eq!(refused(&report), [("1", "site"), ("2", "site"), ("3", "site"), ("9", "site")]);
    assert_eq!((report.new, report.already_there, &report.skipped), (0, 0, &[].into()));
    assert_eq!(findings(&store).await, [""; 0]);
    let again = import(&store, &other).await;
    assert_eq!(refused(&again), refused(&report));
}

#[tokio::test]
async fn a_reply_stays_below_the_first_of_two_comments_with_the_same_id() {
    let store = store();
    let twice = Comment { author: Author { name: "Eve".to_owned(), ..Author::default() }, ..comment("1") };
    let file = [comment("1"), reply("2", "1"), twice];
    let report = import(&store, &file).await;
    assert_eq!((report.new, refused(&report)), (2, vec![("1", "site")]));
    let below = find(&store, &file, "2").await.unwrap();
    assert_eq!(below.ancestors, [find(&store, &this_site(), "1").await.unwrap().id]);
}

#[tokio::test]
async fn a_different_writer_means_another_site_unless_the_source_deleted_the_comment() {
    let store = store();
    import(&store, &this_site()).await;
    let eve = Author { email: "eve@blog.example".to_owned(), name: "Eve".to_owned(), ..Author::default() };
    let report = import(&store, &[Comment { author: eve, ..comment("1") }]).await;
    assert_eq!(refused(&report), [("1", "site")]);
    // The source has deleted the comment in the meantime, including its writer.
    let gone = Comment { state: RecordState::Deleted, author: Author::default(), body: String::new(), ..comment("1") };
    let report = import(&store, &[gone, reply("2", "1"), comment("3")]).await;
    assert_eq!((report.new, report.already_there, report.refused.len()), (0, 3, 0));
    assert_eq!(findings(&store).await, [""; 0]);
}

#[test]
fn the_hash_of_a_writer_reveals_nothing_about_the_address() {
    let hash = |key: &str, name: &str, email: &str| {
        let author =
            Author { key: key.to_owned(), name: name.to_owned(), email: email.to_owned(), ..Author::default() };
        let mut staging = Staging::default();
        staging.add(Record::Comment(Box::new(Comment { author, ..comment("1") })));
        staging.comments[0].writer.clone().unwrap()
    };
    assert_eq!(hash("", "Ada", "ada@example.org"), hash("", "Ada", "lovelace@example.org"));
    assert_eq!(hash("7", "", "ada@example.org"), hash("7", "", "lovelace@example.org"));
    assert_ne!(hash("", "", "ada@example.org"), hash("", "", "lovelace@example.org"));
}

#[tokio::test]
async fn another_map_or_scheme_is_not_another_site() {
    let store = store();
    let on = |key: &str, comment: Comment| Comment { thread: key.to_owned(), ..comment };
    for key in ["http://blog.example/c/", "https://blog.example/c", "//blog.example/c/"] {
        let staging = |map: &str| {
            let mut staging = Staging::default();
            let page = Thread { key: key.to_owned(), url: Some(key.to_owned()), ..Thread::default() };
            staging.add(Record::Thread(page));
            staging.add(Record::Comment(Box::new(on(key, comment("1")))));
            let keys = ThreadKeys { map: Map::parse(map).unwrap(), kind: "posts".to_owned(), ..ThreadKeys::default() };
            staging.resolve(&keys, false);
            staging
        };
        for map in ["", "http* posts/other"] {
            let mut staging = staging(map);
            let users = Users::default();
            importer(&store, &mut staging, &users).run(&mut |_| ()).await.unwrap();
            let report = staging.report();
            assert_eq!((report.new + report.already_there, report.refused.len()), (1, 0), "{key} {map}");
            assert_eq!(report.threads, [("posts/c".to_owned(), 1)].into(), "{key} {map}");
        }
    }
    assert_eq!(findings(&store).await, [""; 0]);
}

#[tokio::test]
async fn files_of_one_command_are_parts_of_one_site() {
    let store = store();
    let (this, mut other) = (this_site(), other_site());
    // The reply is on a page of both sites and must not become a reply to the other site's comment.
    other.push(Comment { author: other[0].author.clone(), ..reply("9", "1") });
    other.push(Comment { thread: "/b".to_owned(), ..comment("10") });
    let report = import_of(&store, "test", &[&this, &other]).await;
    assert_eq!(refused(&report), [("1", "site"), ("2", "site"), ("3", "site")]);
    assert_eq!(report.threads, [("posts/a".to_owned(), 4), ("posts/b".to_owned(), 1)].into());
    let parts = [&this[..1], &this[1..], &this[..]];
    let report = import_of(&store, "test@parts", &parts).await;
    assert_eq!((report.new, report.already_there, report.moved.len()), (3, 3, 0));
    assert_eq!(findings(&store).await, [""; 0]);
}

#[tokio::test]
async fn an_erasure_on_one_site_drops_no_comments_of_another_site() {
    let store = store();
    let hashes = PersonHashes::new(&Secret::from("a salt".to_owned()));
    let by_user =
        |comment: Comment| Comment { author: Author { user_id: Some(7), ..comment.author.clone() }, ..comment };
    let this: Vec<Comment> = this_site().into_iter().map(by_user).collect();
    import(&store, &this).await;
    let clock = Clock::system();
    let person = identify(&store, Who::User(UserId(7)), None).await.unwrap().unwrap();
    erase(&store, &person, &hashes, &clock).await;
    let forgotten = forgotten::forgotten(&store, hashes.clone()).await.unwrap().unwrap();
    let read = |comments: &[Comment]| {
        let mut staging = Staging::default();
        for key in ["/a", "/b"] {
            let url = Some(key.to_owned());
            staging.add(Record::Thread(Thread { key: key.to_owned(), url, ..Thread::default() }));
        }
        for comment in comments {
            staging.add(Record::Comment(Box::new(comment.clone())));
        }
        staging.forget(&Users::default(), &forgotten);
        staging.resolve(&ThreadKeys { kind: "posts".to_owned(), ..ThreadKeys::default() }, false);
        staging
    };
    // The erased user's comments, now without a writer.
    let mut unnamed = read(&this_site());
    unnamed.locate(Some(&store), "test").await.unwrap();
    assert_eq!(unnamed.report().new, 0, "nothing of her comes back");
    let mut other = read(&other_site());
    other.locate(Some(&store), "test").await.unwrap();
    let report = other.report();
    assert_eq!((report.refused.len(), &report.skipped), (3, &[].into()), "nothing of the other site is dropped unseen");
    other.locate(Some(&store), "test@b").await.unwrap();
    assert_eq!(other.report().new, 3);
    assert_eq!(findings(&store).await, [""; 0]);
}

async fn erase(store: &Store, person: &Person, hashes: &PersonHashes, clock: &Clock) {
    begin_erasure(store, person, hashes, clock.now()).await.unwrap();
    let (erasure, mut gone) = (Erasure { store, person, hashes, clock }, std::collections::BTreeMap::default());
    for found in find::matches(store, person, &hashes.who(&person.who), clock.now(), |_, _| ()).await.unwrap() {
        erasure.erase(found, &mut gone).await.unwrap();
    }
}

#[test]
fn the_source_of_a_comment_is_unambiguous_for_any_site_and_id() {
    let source = |site: Option<&str>, id: &str| SourceId(format!("{}:{id}", SourceId::prefix("isso", site)));
    assert_eq!(source(None, "1").0, "isso:1");
    assert_eq!(source(Some("blog.example"), "1").0, "isso@blog.example:1");
    let all = [
        source(None, "a:1"),
        source(Some("a"), "1"),
        source(Some("a:1"), "1"),
        source(Some("a"), "1:1"),
        source(Some("a%3A1"), "1"),
        source(Some("a@b"), "1"),
    ];
    let different: std::collections::BTreeSet<&str> = all.iter().map(|source| source.0.as_str()).collect();
    assert_eq!(different.len(), all.len(), "{all:?}");
    assert!(all.iter().all(|source| source.format() == "isso"));
}
