//! Pages of the largest comments. Reading stops when the response is full.

use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, ThreadId, fingerprint};
use shared::domain::thread::Thread;
use tests::{TestResponse, World, seed};
use transfer::store::fixtures::{Fixture, put_fixtures};

use crate::capacity::id_before_start;

const PARENTS: u64 = 12;
const REPLIES: u64 = 20;

/// Returns the largest body: ten thousand characters of four bytes.
pub(crate) fn body() -> String {
    "😀".repeat(10_000)
}
const EMBEDDED: (&str, &str) = ("SVC_REPLIES_PER_PARENT", "20");

async fn seed(world: &World, inline: usize) -> Vec<u64> {
    fill(world, PARENTS, REPLIES, inline).await
}

/// Fills `posts/1` with this many parents and this many replies to each, all with the largest body. The first `inline`
/// replies are inline, and all others separate. Returns the parents' ids, oldest first.
pub(crate) async fn fill(world: &World, parents: u64, replies_each: u64, inline: usize) -> Vec<u64> {
    let ada = world.user(7, "Ada");
    let store = world.store();
    let model = ada.comment("posts/model", "x").await;
    let model = seed::comment(&store, model).await;
    let thread = ThreadId::new("posts", "1").unwrap();
    let model = Comment { thread: thread.clone(), body: body(), ..model };
    let first = id_before_start(1000);
    let parents: Vec<u64> = (0..parents).map(|place| first + 1000 * place).collect();
    for parent in &parents {
        let replies = || parent + 1..=parent + replies_each;
        let comment = Comment {
            id: CommentId(*parent),
            replies: replies_each,
            fingerprint: fingerprint(replies().map(CommentId)),
            inline: replies().take(inline).collect(),
            has_separate: inline < replies().count(),
            ..model.clone()
        };
        let parent = Fixture::Comment { comment, is_inline: false };
        let replies = replies().zip(1..).map(|(id, place)| {
            let comment = Comment { id: CommentId(id), ancestors: vec![CommentId(id - place)], ..model.clone() };
            Fixture::Comment { comment, is_inline: usize::try_from(place).unwrap() <= inline }
        });
        put_fixtures(&store, std::iter::once(parent).chain(replies)).await.unwrap();
    }
    let count = Thread { parents: parents.len() as u64, ..Thread::default() };
    put_fixtures(&store, [Fixture::Thread(thread, count)]).await.unwrap();
    parents
}

#[track_caller]
fn bounded(query: &str, reply: &TestResponse) {
    println!("{query}: {} units, {} trips", reply.cost.read_units, reply.cost.trips);
    assert!(reply.body.len() < 6_000_000);
    // The response itself takes 370 units. The remaining units are for reads that were running when it became full, and
    // for missing parents.
    assert!(reply.cost.read_units <= 700.0, "{query}: {:?}", reply.cost);
}

#[tokio::test]
async fn a_page_of_the_largest_bodies_stops_reading_when_it_is_full() {
    let world = World::with(&[EMBEDDED]);
    let mut newest_first = seed(&world, 20).await;
    newest_first.reverse();
    let guest = world.guest();
    for query in ["", "cursor=", "sort=most_replied", "sort=most_liked"] {
        let page = guest.list("posts/1", query).await;
        assert_eq!(page.ids(), newest_first[..10], "{query}");
        assert!(page.rows().iter().all(|row| row["replies_count"] == REPLIES));
        bounded(query, &page);
    }
    let page = guest.list("posts/1", "per_page=8").await;
    assert_eq!(guest.get(page.next().unwrap()).await.ok(200).ids(), newest_first[8..]);
    // A page that fits is shown whole.
    let page = guest.list("posts/1", "per_page=2").await;
    assert!(page.rows().iter().all(|row| row["replies"].as_array().unwrap().len() == 20));
}

#[tokio::test]
async fn a_walk_through_the_largest_bodies_misses_nothing_either_way() {
    let world = World::with(&[EMBEDDED]);
    let ids = seed(&world, 20).await;
    let guest = world.guest();
    let pages = guest.walk("posts/1/comments?per_page=9&sort=oldest&cursor=").await;
    assert_eq!(tests::seen(&pages), ids);
    let back = guest.get(pages.last().unwrap().prev().unwrap()).await.ok(200);
    assert_eq!(back.ids(), ids[..9]);
    pages.iter().chain([&back]).for_each(|page| bounded("walk", page));
    let second = guest.list("posts/1", "sort=oldest&per_page=11&page=2").await;
    assert_eq!(second.ids(), ids[11..]);
}

#[tokio::test]
async fn separate_replies_are_not_read_once_the_page_is_full() {
    let world = World::with(&[EMBEDDED]);
    let mut newest_first = seed(&world, 3).await;
    newest_first.reverse();
    for query in ["", "sort=most_replied"] {
        let page = world.guest().list("posts/1", query).await;
        assert_eq!(page.ids(), newest_first[..10], "{query}");
        bounded(query, &page);
    }
}

#[tokio::test]
async fn a_page_of_the_largest_items_for_moderators_says_how_many_fit() {
    let world = World::new();
    // DynamoDB Local counts whole items toward the 1 MB limit of a page from a keys-only index.
    world.leave_the_second_engine();
    let parents = seed(&world, 3).await;
    let moderator = world.moderator();
    let path = "users/7/comments?per_page=50&cursor=";
    let refused = moderator.get(path).await.invalid("per_page");
    let most = refused.json["message"].as_str().unwrap().rsplit(' ').next().unwrap().trim_end_matches('.');
    assert_eq!(moderator.get(&path.replace("50", most)).await.ok(200).rows().len().to_string(), most);
    let pages = moderator.walk(&path.replace("50", "20")).await;
    assert!(pages.iter().all(|page| page.body.len() < 6_000_000));
    let written = 1 + parents.len() * (1 + usize::try_from(REPLIES).unwrap());
    assert_eq!(tests::seen(&pages).len(), written);
}
