//! Pages of the largest comments. Reading stops when the answer is full.

use aws_sdk_dynamodb::types::AttributeValue::{Bool, Ns};
use local::bench::seed::{self, Item, text};
use tests::{START, TABLE, TestResponse, World};

use crate::capacity::EPOCH;

const PARENTS: u64 = 12;
const REPLIES: u64 = 20;
const EMBEDDED: (&str, &str) = ("SVC_REPLIES_PER_PARENT", "20");

/// Fills `posts/1` with twelve parents and twenty replies to each, all of ten thousand characters of four bytes. The first
/// `inline` replies are inline, the others separate. The ids of the parents, oldest first.
async fn seed(world: &World, inline: usize) -> Vec<u64> {
    let ada = world.user(7, "Ada");
    let table = seed::Table { client: &world.client(), name: TABLE };
    let parent = ada.comment("posts/model", "x").await;
    let reply = ada.reply("posts/model", parent, "x").await;
    let models = seed::Models::read(&table, parent, reply).await.unwrap();
    let first = u64::try_from(START - EPOCH - 1_000_000).unwrap() << 12;
    let parents: Vec<u64> = (0..PARENTS).map(|place| first + 1000 * place).collect();
    let comments: Vec<_> = parents.iter().map(|id| (*id, usize::try_from(REPLIES).unwrap())).collect();
    table.write_thread(&models, "1", &comments, |_| ()).await.unwrap();
    let mut items: Vec<Item> = Vec::new();
    for parent in &parents {
        for id in *parent..=*parent + REPLIES {
            let mut item = table.stored(id).await.unwrap();
            item.insert("b".to_owned(), text("😀".repeat(10_000)));
            let below = usize::try_from(id - parent).unwrap();
            if below > inline {
                item.insert("tk".to_owned(), item["ok"].clone());
                item.insert("ts".to_owned(), text(format!("{id:016}")));
            } else if below == 0 && inline < 20 {
                let first = (1..=inline as u64).map(|n| (parent + n).to_string()).collect();
                item.insert("ld".to_owned(), Ns(first));
                item.insert("tr".to_owned(), Bool(true));
            }
            items.push(item);
        }
    }
    table.put(&items).await.unwrap();
    parents
}

#[track_caller]
fn bounded(query: &str, reply: &TestResponse) {
    println!("{query}: {} units, {} trips", reply.cost.read_units, reply.cost.trips);
    assert!(reply.body.len() < 6_000_000);
    // The answer itself takes 370 units. Reads under way when it is full come on top, and the missing parents.
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
