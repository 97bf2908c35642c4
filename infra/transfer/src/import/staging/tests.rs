//! Tests the fates and places of comments.

use futures_util::FutureExt;

use super::super::author::Users;
use super::super::record::{Author, Comment, Record, RecordState, Thread};
use super::super::tests::{comment, reply};
use super::super::thread_key::ThreadKeys;
use super::*;

fn page(key: &str) -> Thread {
    Thread { key: key.to_owned(), url: Some(key.to_owned()), ..Thread::default() }
}

fn keys() -> ThreadKeys {
    ThreadKeys { kind: "posts".to_owned(), ..ThreadKeys::default() }
}

struct Outcome {
    report: Report,
    staged: Vec<Placed>,
}

impl Outcome {
    fn find(&self, tag: &str) -> Option<&Placed> {
        self.staged.iter().find(|staged| staged.tag == tag)
    }

    fn parent(&self, tag: &str) -> Option<&str> {
        let parent = self.find(tag).unwrap_or_else(|| panic!("no {tag}")).ancestors.last()?;
        self.staged.iter().find(|staged| staged.id == *parent).map(|staged| staged.tag.as_str())
    }

    fn refused(&self) -> Vec<(&str, &str)> {
        entries(&self.report.refused)
    }

    fn moved(&self) -> Vec<(&str, &str)> {
        entries(&self.report.moved)
    }
}

fn entries(entries: &[Entry]) -> Vec<(&str, &str)> {
    entries.iter().map(|entry| (entry.id.as_str(), entry.reason.as_str())).collect()
}

fn resolved(threads: &[Thread], comments: &[Comment], keep_spam: bool) -> Outcome {
    let mut staging = Staging::default();
    for comment in comments {
        staging.add(Record::Comment(Box::new(comment.clone())));
    }
    for thread in threads {
        staging.add(Record::Thread(thread.clone()));
    }
    staging.resolve(&keys(), keep_spam);
    let staged = kept(&mut staging);
    let report = staging.report();
    let skipped: u64 = report.skipped.values().sum();
    assert_eq!(report.read, report.new + report.already_there + skipped + report.refused.len() as u64);
    assert_eq!(report.new, staged.len() as u64);
    Outcome { report, staged }
}

/// The comments that stay, parents first.
fn kept(staging: &mut Staging) -> Vec<Placed> {
    staging.locate(None, "test").now_or_never().unwrap().unwrap();
    let placed = |index| staging.placed(index, &Users::default());
    let mut all: Vec<Placed> = (0..staging.comments.len()).filter_map(placed).collect();
    all.sort_by_key(|placed| placed.ancestors.len());
    all
}

fn outcome(comments: &[Comment]) -> Outcome {
    resolved(&[page("/a"), page("/b")], comments, false)
}

#[test]
fn an_edit_time_before_the_comment_or_in_the_future_is_dropped() {
    let mut staging = Staging::default();
    let created = comment("1").created_at.unwrap().as_second();
    staging.latest = Some(created + 100);
    for (id, seconds) in [("before", -1), ("same", 0), ("after", 100), ("ahead", 101)] {
        let edited = Timestamp::from_second(created + seconds).ok();
        staging.add(Record::Comment(Box::new(Comment { edited_at: edited, ..comment(id) })));
    }
    staging.add(Record::Thread(page("/a")));
    staging.resolve(&keys(), false);
    let kept = kept(&mut staging);
    let edited = |id: &str| kept.iter().any(|staged| staged.tag == id && staged.record.edited_at.is_some());
    assert_eq!(["before", "same", "after", "ahead"].map(edited), [false, true, true, false]);
}

#[test]
fn comments_are_placed_below_their_parents() {
    let outcome = outcome(&[comment("1"), reply("2", "1"), reply("3", "2"), comment("4")]);
    let tags: Vec<_> = outcome.staged.iter().map(|staged| (staged.tag.as_str(), staged.ancestors.len())).collect();
    assert_eq!(tags, [("1", 0), ("4", 0), ("2", 1), ("3", 2)]);
    assert_eq!((outcome.parent("3"), outcome.parent("2"), outcome.parent("1")), (Some("2"), Some("1"), None));
    assert_eq!(outcome.report.threads, [("posts/a".to_owned(), 4)].into());
}

#[test]
fn a_reply_may_be_read_before_its_parent() {
    let outcome = outcome(&[reply("2", "1"), comment("1")]);
    assert_eq!(outcome.parent("2"), Some("1"));
    assert!(outcome.moved().is_empty());
}

#[test]
fn a_bad_record_is_refused_with_its_id_and_later_records_are_unaffected() {
    let timeless = Comment { created_at: None, ..comment("1") };
    let empty = Comment { body: " \u{200b} ".to_owned(), ..comment("2") };
    let nowhere = Comment { thread: "1337".to_owned(), ..comment("3") };
    let nameless = Comment { created_at: None, ..comment("") };
    let outcome = outcome(&[timeless, empty, nowhere, nameless, comment("4")]);
    assert_eq!(outcome.refused(), [("1", "time"), ("2", "empty"), ("3", "thread"), ("#4", "time")]);
    assert_eq!(outcome.find("4").unwrap().record.body, "body of 4");
    assert_eq!(outcome.report.unmapped, ["1337"]);
}

#[test]
fn deleted_or_unwanted_comments_are_skipped_by_reason() {
    let states = [
        RecordState::Deleted,
        RecordState::Spam,
        RecordState::Trash,
        RecordState::Pingback,
        RecordState::Other,
        RecordState::Spam,
    ];
    let comments: Vec<_> =
        states.iter().enumerate().map(|(n, state)| Comment { state: *state, ..comment(&n.to_string()) }).collect();
    let skipped = outcome(&comments);
    let expected = [("deleted", 1), ("pingback", 1), ("spam", 2), ("trash", 1), ("type", 1)];
    assert_eq!(skipped.report.skipped, expected.map(|(reason, count)| (reason.to_owned(), count)).into());
    let kept = resolved(&[page("/a")], &comments, true);
    assert_eq!(kept.report.new, 4);
    assert!(kept.staged.iter().all(|staged| staged.state == RecordState::Rejected));
}

#[test]
fn a_deleted_comment_without_a_time_is_skipped_and_not_refused() {
    let gone = Comment { state: RecordState::Deleted, created_at: None, body: String::new(), ..comment("1") };
    let outcome = outcome(&[gone, reply("2", "1")]);
    assert!(outcome.refused().is_empty());
    assert_eq!(outcome.moved(), [("2", "parent")], "no placeholder can stand at no time");
}

#[test]
fn a_skipped_comment_with_replies_that_stay_becomes_a_placeholder() {
    let gone = |id: &str| Comment { state: RecordState::Deleted, likes: 3, pinned: true, ..comment(id) };
    let spam_reply = |id: &str, parent: &str| Comment { state: RecordState::Spam, ..reply(id, parent) };
    let outcome = outcome(&[gone("1"), spam_reply("2", "1"), reply("3", "2"), gone("4"), spam_reply("5", "4")]);
    assert_eq!(outcome.report.new, 3);
    for tag in ["1", "2"] {
        let placeholder = outcome.find(tag).unwrap();
        assert!(placeholder.is_placeholder, "{tag}");
    }
    assert!(!outcome.find("3").unwrap().is_placeholder);
    assert_eq!((outcome.parent("3"), outcome.parent("2")), (Some("2"), Some("1")));
    assert!(outcome.find("4").is_none() && outcome.find("5").is_none(), "nothing below them stays");
    assert!(outcome.moved().is_empty());
}

#[test]
fn a_skipped_comment_with_only_rejected_replies_is_dropped_with_them() {
    let gone = |id: &str| Comment { state: RecordState::Deleted, ..comment(id) };
    let rejected = |id: &str, parent: &str| Comment { state: RecordState::Rejected, ..reply(id, parent) };
    let outcome =
        outcome(&[gone("1"), rejected("2", "1"), rejected("3", "2"), gone("4"), rejected("5", "4"), reply("6", "4")]);
    assert_eq!(outcome.report.skipped, [("deleted".to_owned(), 3)].into());
    assert!(["1", "2", "3"].iter().all(|tag| outcome.find(tag).is_none()));
    assert!(["4", "5", "6"].iter().all(|tag| outcome.find(tag).is_some()));
}

#[test]
fn rejected_comments_between_a_skipped_and_a_live_one_become_placeholders() {
    let gone = |id: &str| Comment { state: RecordState::Deleted, ..comment(id) };
    let spam = |id: &str, parent: &str| Comment { state: RecordState::Spam, ..reply(id, parent) };
    let lone = [gone("1"), spam("2", "1"), spam("3", "2"), reply("4", "3"), spam("5", "1")];
    let beside = [gone("6"), reply("7", "6"), spam("8", "6"), reply("9", "8")];
    let outcome = resolved(&[page("/a")], &[&lone[..], &beside[..]].concat(), true);
    assert_eq!((outcome.report.new, outcome.moved()), (9, vec![]));
    let placeholders = outcome.staged.iter().filter(|staged| staged.is_placeholder).map(|staged| &*staged.tag);
    assert_eq!(placeholders.collect::<Vec<_>>(), ["1", "6", "2", "3"]);
    assert_eq!(["4", "5", "9"].map(|tag| outcome.parent(tag)), [Some("3"), Some("1"), Some("8")]);
}

#[test]
fn a_reply_whose_parent_is_missing_or_in_another_thread_becomes_top_level() {
    let elsewhere = Comment { thread: "/b".to_owned(), ..comment("9") };
    let timeless = Comment { created_at: None, ..comment("8") };
    let outcome = outcome(&[reply("1", "77"), elsewhere, reply("2", "9"), timeless, reply("3", "8"), reply("4", "2")]);
    assert_eq!(outcome.moved(), [("1", "parent"), ("2", "thread"), ("3", "parent")]);
    for tag in ["1", "2", "3"] {
        assert_eq!((outcome.find(tag).unwrap().ancestors.len(), outcome.parent(tag)), (0, None));
    }
    assert_eq!(outcome.parent("4"), Some("2"));
}

#[test]
fn the_oldest_comment_in_a_cycle_of_parents_becomes_top_level_and_the_rest_stay_below() {
    let at = |second, comment: Comment| Comment { created_at: Timestamp::from_second(second).ok(), ..comment };
    let circle = [at(30, reply("1", "3")), at(10, reply("2", "1")), at(20, reply("3", "2"))];
    let others = [reply("4", "1"), reply("5", "4"), reply("6", "6"), reply("7", "6"), comment("8"), reply("9", "8")];
    let outcome = outcome(&[&circle[..], &others[..]].concat());
    assert_eq!(outcome.moved(), [("2", "parent"), ("6", "parent")]);
    assert_eq!(outcome.report.new, 9);
    let parents = ["1", "2", "3", "4", "5", "6", "7", "9"].map(|tag| outcome.parent(tag));
    let expected = [Some("3"), None, Some("2"), Some("1"), Some("4"), None, Some("6"), Some("8")];
    assert_eq!(parents, expected);
}

#[test]
fn replies_deeper_than_ten_levels_are_attached_at_level_ten() {
    let mut comments = vec![comment("0")];
    comments.extend((1..=14).map(|n| reply(&n.to_string(), &(n - 1).to_string())));
    let outcome = outcome(&comments);
    assert_eq!((outcome.find("10").unwrap().ancestors.len(), outcome.parent("10")), (10, Some("9")));
    for tag in ["11", "12", "13", "14"] {
        assert_eq!((outcome.find(tag).unwrap().ancestors.len(), outcome.parent(tag)), (10, Some("9")), "{tag}");
    }
    assert_eq!(outcome.moved().len(), 4);
    assert!(outcome.moved().iter().all(|(_, reason)| *reason == "depth"));
}

#[test]
fn pages_that_become_one_thread_are_joined() {
    let https = Thread { url: Some("https://blog.example/a/".to_owned()), ..page("1") };
    let http = Thread { url: Some("http://blog.example/a?utm=1".to_owned()), ..page("2") };
    let on = |thread: &str, comment: Comment| Comment { thread: thread.to_owned(), ..comment };
    let outcome = resolved(&[https, http], &[on("1", comment("1")), on("2", reply("2", "1"))], false);
    assert_eq!(outcome.report.threads, [("posts/a".to_owned(), 2)].into());
    assert_eq!(outcome.parent("2"), Some("1"));
    assert!(outcome.moved().is_empty());
}

#[test]
fn comments_of_a_deleted_thread_are_skipped() {
    let gone = Thread { deleted: true, ..page("/a") };
    let outcome = resolved(&[gone], &[comment("1"), reply("2", "1")], false);
    assert_eq!(outcome.report.skipped, [("deleted".to_owned(), 2)].into());
}

#[test]
fn threads_of_other_hosts_are_refused() {
    let mut staging = Staging::default();
    staging.add(Record::Thread(Thread { url: Some("https://other.example/a".to_owned()), ..page("/a") }));
    staging.add(Record::Comment(Box::new(comment("1"))));
    let keys = ThreadKeys { hosts: vec!["blog.example".to_owned()], ..keys() };
    staging.resolve(&keys, false);
    assert_eq!(entries(&staging.report().refused), [("1", "host")]);
    assert!(staging.report().unmapped.is_empty());
}

#[test]
fn the_first_duplicate_that_can_be_imported_wins() {
    let gone = Comment { state: RecordState::Deleted, ..comment("1") };
    let timeless = Comment { created_at: None, ..comment("2") };
    let outcome = outcome(&[gone.clone(), timeless, reply("3", "1"), comment("1"), comment("2"), comment("2"), gone]);
    assert_eq!((outcome.report.new, outcome.report.already_there), (3, 1));
    assert_eq!(outcome.report.skipped, [("deleted".to_owned(), 2)].into());
    assert_eq!(outcome.refused(), [("2", "time")]);
    assert!(!outcome.find("1").unwrap().is_placeholder);
    assert_eq!((outcome.parent("3"), outcome.moved()), (Some("1"), vec![]));
}

#[test]
fn the_same_id_on_two_pages_means_two_comments() {
    let other = Comment { thread: "/b".to_owned(), ..comment("1") };
    let below = Comment { thread: "/b".to_owned(), ..reply("2", "1") };
    let outcome = outcome(&[comment("1"), other, below]);
    assert_eq!(outcome.parent("2"), Some("1@posts/b"));
    assert_eq!(outcome.find("1").unwrap().thread.record, "a");
}

#[test]
fn a_comment_without_an_id_gets_the_same_one_in_every_run() {
    let tags = || {
        let other = Comment { body: "another".to_owned(), ..comment("") };
        outcome(&[comment(""), other]).staged.iter().map(|kept| kept.tag.clone()).collect::<Vec<_>>()
    };
    assert_eq!(tags(), tags());
    assert_ne!(tags()[0], tags()[1]);
}

#[test]
fn an_indent_at_the_start_of_a_body_is_kept_and_blank_lines_are_not() {
    for (typed, kept) in [
        ("  * a\n  * b\n    * c \n\n", "  * a\n  * b\n    * c"),
        ("    # make install\n    cp *.o", "    # make install\n    cp *.o"),
        ("\n  \r\n    x = a*b*c\n", "    x = a*b*c"),
        ("\n\nhello", "hello"),
    ] {
        let outcome = outcome(&[Comment { body: typed.to_owned(), ..comment("1") }]);
        assert_eq!(outcome.find("1").unwrap().record.body, kept, "{typed:?}");
    }
    // Earlier versions cut the indent, and the id must not change.
    let tag = |body: &str| outcome(&[Comment { body: body.to_owned(), ..comment("") }]).staged[0].tag.clone();
    assert_eq!(tag("\n    x = 1"), tag("x = 1"));
}

#[test]
fn a_reply_without_a_page_is_on_the_page_of_its_parent() {
    let nowhere = |comment: Comment| Comment { thread: String::new(), ..comment };
    let other = Comment { thread: "/b".to_owned(), ..comment("2") };
    let outcome =
        outcome(&[nowhere(reply("3", "2")), comment("1"), other, nowhere(reply("4", "5")), nowhere(comment("6"))]);
    assert_eq!((outcome.parent("3"), outcome.find("3").unwrap().thread.record.as_str()), (Some("2"), "b"));
    assert_eq!((outcome.refused(), outcome.moved()), (vec![("4", "thread"), ("6", "thread")], vec![]));
}

#[test]
fn later_records_of_a_thread_add_what_is_missing() {
    let first = Thread { key: "7".to_owned(), ..Thread::default() };
    let second = Thread { key: "7".to_owned(), title: Some("Seven".to_owned()), ..page("/seven") };
    let third = Thread { key: "7".to_owned(), title: Some("Other".to_owned()), ..page("/other") };
    let seven = Comment { thread: "7".to_owned(), ..comment("1") };
    let outcome = resolved(
        &[first, Thread { key: "7".to_owned(), ..second }, Thread { key: "7".to_owned(), ..third }],
        &[seven],
        false,
    );
    assert_eq!(outcome.find("1").unwrap().thread.record, "seven");
}

#[test]
fn an_account_anywhere_in_the_file_supplies_its_comments_author() {
    let mut staging = Staging::default();
    let author = Author { key: "u1".to_owned(), ..Author::default() };
    staging.add(Record::Thread(page("/a")));
    staging.add(Record::Comment(Box::new(Comment { author, ..comment("1") })));
    staging.add(Record::User(User { id: "u1".to_owned(), name: "Grace".to_owned(), ..User::default() }));
    staging.resolve(&keys(), false);
    assert_eq!(kept(&mut staging)[0].writer.name, "Grace");
}

#[test]
fn long_bodies_are_kept_up_to_64_kilobytes() {
    let long = Comment { body: "é".repeat(20_000), ..comment("1") };
    let longer = Comment { body: "é".repeat(40_000), ..comment("2") };
    let outcome = outcome(&[long, longer]);
    assert_eq!(outcome.find("1").unwrap().record.body.chars().count(), 20_000);
    assert_eq!(outcome.find("2").unwrap().record.body.len(), MAX_BODY);
}

#[test]
fn bidirectional_overrides_are_left_out_even_if_written_as_entities() {
    for (typed, kept) in [
        ("a\u{202e}b", "ab"),
        ("a&#x202E;b **&#8238;c** &#8239;d", "ab **c** &#8239;d"),
        ("`&#x202e;` &#xe9;", "`&#x202e;` &#xe9;"),
        ("a &#x20&#x202E;2E; b", "a &#x20 2E; b"),
        ("&#x202e", "&#x202e"),
        ("[a](/b \"c&#x202e;d\")", "[a](/b \"cd\")"),
    ] {
        let outcome = outcome(&[Comment { body: typed.to_owned(), ..comment("1") }]);
        assert_eq!(outcome.find("1").unwrap().record.body, kept);
    }
}

#[test]
fn bodies_in_html_become_markdown() {
    let html = Comment { body: "<p>a &amp;amp; <b>b</b></p>".to_owned(), format: BodyFormat::Html, ..comment("1") };
    assert_eq!(outcome(&[html]).find("1").unwrap().record.body, "a \\&amp; **b**");
}
