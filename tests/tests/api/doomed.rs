//! Deletions that cross other requests about a comment that goes with the deleted one, in both orders: either the
//! comment is gone and the other request is refused, or the acknowledged change is kept.

use std::time::Duration;

use futures_util::future::join_all;
use shared::domain::ids::CommentId;
use shared::store::Reading;
use tests::{Actor, Faults, Setup, TestResponse, World};
use tokio::time::timeout;

const HELD: (&str, &str) = ("SVC_REQUIRE_APPROVAL", "true");
/// The jobs of these few requests take about a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// A placeholder, a placeholder below it, and below that a live reply by Bob. Each of the last two has a rejected reply by Cem,
/// unless the live reply is pending. Deleting the live reply removes all of them.
struct Scene {
    world: World,
    faults: Faults,
    bob: Actor,
    placeholders: [u64; 2],
    last: u64,
    rejected: Vec<u64>,
}

impl Scene {
    async fn new() -> Self {
        Self::with_settings(&[]).await
    }

    /// `settings` apply when the live reply is written.
    async fn with_settings(settings: &[(&str, &str)]) -> Self {
        let faults = Faults::new(20);
        let world = Setup::new(&[]).faults(&faults).start();
        let (ada, bob, cem) = (world.user(7, "Ada"), world.user(8, "Bob"), world.user(9, "Cem"));
        let top = ada.comment("posts/1", "top").await;
        let middle = ada.reply("posts/1", top, "middle").await;
        let last = world.again(settings).user(8, "Bob").reply("posts/1", middle, "last").await;
        let mut rejected = Vec::new();
        for parent in [middle, last] {
            let reply = cem.write("posts/1", Some(parent), "rejected").await;
            if reply.status == 201 {
                world.moderator().judge(reply.id(), "reject").await.ok(200);
                rejected.push(reply.id());
            }
        }
        for id in [middle, top] {
            ada.remove(id).await.ok(204);
        }
        finish_jobs(&world).await;
        world.pass(Duration::from_millis(10));
        Self { world, faults, bob, placeholders: [top, middle], last, rejected }
    }

    /// Bob deletes the last live reply while the transaction of the other request is on its way.
    async fn delete_first(&self, other: impl Future<Output = TestResponse>) -> TestResponse {
        self.delete_before("TransactWriteItems", other).await
    }

    /// Like [`Self::delete_first`], for a request that writes by another operation.
    async fn delete_before(&self, operation: &'static str, other: impl Future<Output = TestResponse>) -> TestResponse {
        let deletion = async {
            self.bob.remove(self.last).await.ok(204);
        };
        let delayed = self.faults.delay(operation, "C#");
        tokio::join!(other, delayed.during(deletion)).0
    }

    /// Completes the other request while the transaction of Bob's deletion is on its way.
    async fn delete_last(&self, other: impl Future<Output = TestResponse>) -> TestResponse {
        let mut response = None;
        let delayed = self.faults.delay("TransactWriteItems", "C#");
        let other = async { response = Some(other.await) };
        let (deleted, ()) = tokio::join!(self.bob.remove(self.last), delayed.during(other));
        deleted.ok(204);
        response.unwrap()
    }

    /// The two placeholders and the last reply as they are now, and once all that follows is done.
    async fn states(&self) -> [&'static str; 3] {
        let [top, middle] = self.placeholders;
        let found = states(&self.world, [top, middle, self.last]).await;
        finish_jobs(&self.world).await;
        assert_eq!(states(&self.world, [top, middle, self.last]).await, found);
        assert_eq!(self.world.findings().await, [""; 0]);
        found
    }
}

/// Fails if a job never ends.
async fn finish_jobs(world: &World) {
    timeout(PATIENCE, world.finish_jobs()).await.expect("the jobs end");
}

async fn states<const N: usize>(world: &World, ids: [u64; N]) -> [&'static str; N] {
    let moderator = world.moderator();
    let state = |id: u64| {
        let moderator = moderator.clone();
        async move {
            let answer = moderator.get(&format!("comments/{id}")).await;
            match answer.status {
                200 if answer.data()["is_deleted"] == true => "placeholder",
                200 => "there",
                _ => "gone",
            }
        }
    };
    join_all(ids.map(state)).await.try_into().unwrap()
}

#[tokio::test]
async fn a_reply_to_a_comment_that_is_being_deleted_is_refused_or_stays() {
    let scene = Scene::new().await;
    let ada = scene.world.user(7, "Ada");
    scene.delete_first(ada.write("posts/1", Some(scene.last), "late")).await.invalid("parent_id");
    assert_eq!(scene.states().await, ["gone"; 3]);

    let scene = Scene::new().await;
    let ada = scene.world.user(7, "Ada");
    let reply = scene.delete_last(ada.write("posts/1", Some(scene.last), "early")).await.ok(201).id();
    assert_eq!(scene.states().await, ["placeholder"; 3]);
    assert_eq!(scene.world.guest().replies(scene.last, "").await.ids(), [reply]);
}

#[tokio::test]
async fn a_reply_that_is_approved_below_a_comment_that_is_being_deleted_goes_along_or_stays() {
    // Below the placeholder in the middle, and below the deleted comment.
    for (place, kept) in [(0, ["placeholder", "placeholder", "gone"]), (1, ["placeholder"; 3])] {
        let scene = Scene::new().await;
        let (moderator, rejected) = (scene.world.moderator(), scene.rejected[place]);
        scene.delete_first(moderator.judge(rejected, "approve")).await.refused(404, "not_found");
        assert_eq!(scene.states().await, ["gone"; 3]);
        assert_eq!(states(&scene.world, [rejected]).await, ["gone"]);

        let scene = Scene::new().await;
        let (moderator, rejected) = (scene.world.moderator(), scene.rejected[place]);
        scene.delete_last(moderator.judge(rejected, "approve")).await.ok(200);
        assert_eq!(scene.states().await, kept);
        scene.world.guest().get(&format!("comments/{rejected}")).await.ok(200);
    }
}

#[tokio::test]
async fn nothing_is_acknowledged_about_a_comment_after_its_deletion() {
    for action in ["like", "report", "edit", "reject", "reports/dismiss"] {
        let scene = Scene::new().await;
        let ada = scene.world.user(7, "Ada");
        ada.report(scene.last, "spam").await.ok(201);
        scene.world.wait_until_idle().await;
        let operation = if action == "edit" { "UpdateItem" } else { "TransactWriteItems" };
        scene.delete_before(operation, act(&scene, action)).await.refused(404, "not_found");
        assert_eq!(scene.states().await, ["gone"; 3], "{action}");
        let scene = Scene::new().await;
        let response = scene.delete_last(act(&scene, action)).await;
        assert!(response.status < 300, "{action}: {:#}", response.json);
        assert_eq!(scene.states().await, ["gone"; 3], "{action}");
        assert!(scene.world.moderator().queue("all").await.is_empty(), "{action}");
    }
}

async fn act(scene: &Scene, action: &str) -> TestResponse {
    let (cem, moderator) = (scene.world.user(9, "Cem"), scene.world.moderator());
    match action {
        "like" => cem.like(scene.last).await,
        "report" => cem.report(scene.last, "spam").await,
        "edit" => scene.bob.edit(scene.last, "edited").await,
        verdict => moderator.judge(scene.last, verdict).await,
    }
}

#[tokio::test]
async fn a_pending_reply_that_is_approved_or_replied_to_while_it_is_being_deleted_goes_or_stays() {
    let scene = Scene::with_settings(&[HELD]).await;
    let moderator = scene.world.moderator();
    scene.delete_first(moderator.judge(scene.last, "approve")).await.refused(404, "not_found");
    assert_eq!(scene.states().await, ["gone"; 3]);

    let scene = Scene::with_settings(&[HELD]).await;
    let moderator = scene.world.moderator();
    scene.delete_last(moderator.judge(scene.last, "approve")).await.ok(200);
    assert_eq!(scene.states().await, ["gone"; 3]);

    let scene = Scene::with_settings(&[HELD]).await;
    scene.delete_first(scene.bob.write("posts/1", Some(scene.last), "late")).await.invalid("parent_id");
    assert_eq!(scene.states().await, ["gone"; 3]);

    let scene = Scene::with_settings(&[HELD]).await;
    let reply = scene.delete_last(scene.bob.write("posts/1", Some(scene.last), "early")).await.ok(201).id();
    assert_eq!(scene.states().await, ["placeholder"; 3]);
    assert_eq!(scene.world.guest().replies(scene.last, "").await.ids(), [reply]);
}

#[tokio::test]
async fn a_deleted_reply_is_gone_with_the_placeholders_above_it_before_any_job_runs() {
    for settings in [&[][..], &[HELD]] {
        let scene = Scene::with_settings(settings).await;
        let store = scene.world.store();
        scene.bob.remove(scene.last).await.ok(204);
        for id in scene.placeholders.into_iter().chain([scene.last]) {
            assert!(store.comment(CommentId(id), Reading::Consistent).await.unwrap().is_none(), "{id}");
        }
        assert_eq!(scene.states().await, ["gone"; 3]);
    }
}
