//! Only public comments count in their thread. Events and jobs update the items of counted comments and the total.

use std::time::Duration;

use shared::domain::ids::{CommentId, ThreadId};
use shared::domain::job::{CountBelow, CountReplies, Job, MAX_INCOMPLETE};
use shared::domain::time::Timestamp;
use shared::store::counts::RecountTrigger;
use tests::{Actor, World};
use tokio::time::Instant;

/// Returns the comments that count in `posts/1`, oldest first.
async fn counted(world: &World) -> Vec<u64> {
    world.wait_until_idle().await;
    let items = world.items().await;
    let of_thread = items.iter().filter(|item| item["pk"].as_s().unwrap() == "T#posts#1");
    let mut rows: Vec<u64> = of_thread
        .filter_map(|item| item["sk"].as_s().unwrap().strip_prefix("K#"))
        .map(|id| id.trim_start_matches('0').parse().unwrap())
        .collect();
    rows.sort_unstable();
    let count = world.item("T#posts#1", "K").await.map_or(0, |item| item["n"].as_n().unwrap().parse().unwrap());
    assert_eq!(rows.len(), count);
    assert_eq!(world.findings().await, [""; 0]);
    rows
}

#[tokio::test]
async fn a_comment_counts_while_everyone_may_see_it() {
    let world = World::new();
    let held = world.again(&[("SVC_REQUIRE_APPROVAL", "true")]);
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let top = ada.comment("posts/1", "top").await;
    let reply = ada.reply("posts/1", top, "reply").await;
    assert_eq!(counted(&world).await, [top, reply]);
    world.pass(Duration::from_millis(1));
    let pending = held.user(7, "Ada").comment("posts/1", "pending").await;
    assert_eq!(counted(&world).await, [top, reply]);
    moderator.judge(pending, "approve").await.ok(200);
    assert_eq!(counted(&world).await, [top, reply, pending]);
    ada.edit(pending, "edited").await.ok(200);
    ada.like(pending).await.ok(200);
    moderator.judge(reply, "reject").await.ok(200);
    assert_eq!(counted(&world).await, [top, pending]);
    ada.remove(pending).await.ok(204);
    assert_eq!(counted(&world).await, [top]);
    ada.remove(top).await.ok(204);
    assert_eq!(counted(&world).await, [0; 0]);
}

/// A comment with 30 replies. Two of the replies have replies, and one of these two is rejected.
struct Tree {
    top: u64,
    below: Vec<u64>,
    rejected: u64,
    below_rejected: u64,
}

async fn tree(world: &World, ada: &Actor) -> Tree {
    let top = ada.comment("posts/1", "top").await;
    let mut below = ada.write_many("posts/1", top, 30).await;
    let rejected = below.remove(3);
    let below_rejected = ada.reply("posts/1", rejected, "below the rejected one").await;
    let mut parent = below[20];
    for _ in 0..3 {
        below.extend(ada.write_many("posts/1", parent, 2).await);
        parent = below[below.len() - 1];
    }
    world.moderator().judge(rejected, "reject").await.ok(200);
    Tree { top, below, rejected, below_rejected }
}

#[tokio::test]
async fn nothing_below_a_hidden_comment_counts_until_it_is_shown_again() {
    let world = World::new();
    let (ada, moderator) = (world.user(7, "Ada"), world.moderator());
    let Tree { top, below, rejected, below_rejected } = tree(&world, &ada).await;
    let other = ada.comment("posts/1", "other").await;
    let mut shown = [&[top, other], &below[..]].concat();
    shown.sort_unstable();
    assert_eq!(counted(&world).await, shown);
    moderator.judge(top, "reject").await.ok(200);
    assert_eq!(counted(&world).await, [other]);
    // An approved reply doesn't count below a hidden comment.
    moderator.judge(rejected, "approve").await.ok(200);
    assert_eq!(counted(&world).await, [other]);
    moderator.judge(top, "approve").await.ok(200);
    shown.extend([rejected, below_rejected]);
    shown.sort_unstable();
    assert_eq!(counted(&world).await, shown);
    ada.remove(top).await.ok(204);
    shown.retain(|id| *id != top);
    assert_eq!(counted(&world).await, shown);
}

#[tokio::test]
async fn a_comment_counts_once_however_often_it_is_counted() {
    let world = World::new();
    let (ada, store) = (world.user(7, "Ada"), world.store());
    let top = ada.comment("posts/1", "top").await;
    let reply = ada.reply("posts/1", top, "reply").await;
    let thread = ThreadId::new("posts", "1").unwrap();
    for trigger in [RecountTrigger::Event, RecountTrigger::Walk] {
        let again = |id| store.recount_comment(&thread, CommentId(id), trigger);
        let (first, second, third) = tokio::join!(again(top), again(top), again(reply));
        let replies =
            [first, second, third].map(|recounted| recounted.unwrap().map(|recounted| recounted.comment.replies));
        assert_eq!(replies, [Some(1), Some(1), Some(0)]);
        assert_eq!(counted(&world).await, [top, reply]);
    }
    for id in [reply, top] {
        ada.remove(id).await.ok(204);
    }
    world.wait_until_idle().await;
    // The stream's record arrives late.
    assert!(store.recount_comment(&thread, CommentId(reply), RecountTrigger::Event).await.unwrap().is_none());
    assert_eq!(counted(&world).await, [0; 0]);
}

#[tokio::test]
async fn a_job_that_ran_out_of_time_continues_where_it_stopped() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let Tree { top, below, .. } = tree(&world, &ada).await;
    let shown = counted(&world).await;
    // Restores the state from before these comments were counted.
    for id in &below {
        world.remove("T#posts#1", &format!("K#{id:016}")).await;
    }
    world.set("T#posts#1", "K", "n", Some(aws_sdk_dynamodb::types::AttributeValue::N("1".to_owned()))).await;
    let thread = ThreadId::new("posts", "1").unwrap();
    let walks = vec![CountReplies::of(CommentId(top))];
    let job = CountBelow { thread, walks, incomplete: Vec::new(), is_first: false, changed_at: Timestamp(0) };
    let (mut left, mut parts) = (Some(Job::CountBelow(job)), 0);
    while let Some(job) = left {
        let rest = world.store().run_job(job, world.now(), Instant::now()).await.unwrap();
        left = rest.map(|rest| rest.job);
        parts += 1;
    }
    assert!(parts > 5, "{parts}");
    assert_eq!(counted(&world).await, shown);
}

#[tokio::test]
async fn the_counting_job_fits_into_a_message_however_many_comments_the_index_misses() {
    let world = World::new();
    let ada = world.user(7, "Ada");
    let Tree { top, below, .. } = tree(&world, &ada).await;
    let shown = counted(&world).await;
    for id in &below {
        world.remove("T#posts#1", &format!("K#{id:016}")).await;
    }
    world.set("T#posts#1", "K", "n", Some(aws_sdk_dynamodb::types::AttributeValue::N("1".to_owned()))).await;
    let thread = ThreadId::new("posts", "1").unwrap();
    // Simulates an index that missed the replies of this many comments before the walk reached the tree.
    let missed = (1..=MAX_INCOMPLETE as u64).map(|n| CommentId(top + n * 1_000_000)).collect();
    let walks = vec![CountReplies::of(CommentId(top))];
    let job = CountBelow { thread, walks, incomplete: missed, is_first: false, changed_at: world.now() };
    let rest = world.store().run_job(Job::CountBelow(job), world.now(), Instant::now()).await.unwrap().unwrap();
    let Job::CountBelow(job) = &rest.job else { panic!("{rest:?}") };
    assert_eq!((job.walks.len(), job.incomplete.len()), (1 + MAX_INCOMPLETE, 0));
    assert!(!rest.delay.is_zero() && serde_json::to_string(&rest.job).unwrap().len() < 128 * 1024);
    world.send_job(&rest.job).await;
    world.finish_jobs().await;
    assert_eq!(counted(&world).await, shown);
}
