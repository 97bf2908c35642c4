//! Decisions by moderators about a text that has changed since they read it, and a comment whose writer is renamed
//! during its check. `tests/pairs` tests edits, deletions and decisions in every order.

use std::collections::BTreeMap;
use std::time::Duration;

use shared::domain::comment::Comment;
use shared::domain::ids::{CommentId, IdSource, Random, UserId};
use shared::domain::time::Clock;
use shared::domain::verdict::{self, Judgment};
use shared::store::Reading;
use shared::store::comments::Edit;
use shared::store::log::By;
use shared::store::moderation::{Decided, Verdict};
use tests::{Actor, World};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Maximum wait for the service's request, so that a service that never sends it doesn't hang the test.
const PATIENCE: Duration = Duration::from_secs(30);
const HELD: (&str, &str) = ("SVC_REQUIRE_APPROVAL", "true");

fn judgment(is_doubtful: bool) -> Judgment {
    Judgment::new(is_doubtful.then(verdict::Verdict::akismet).into_iter().collect(), None)
}

/// A spam check whose response the test controls.
pub(crate) struct SlowCheck {
    listener: TcpListener,
    url: String,
}

impl SlowCheck {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        Self { listener, url }
    }

    pub(crate) fn settings(&self) -> [(&str, &str); 2] {
        [("SVC_AKISMET_KEY", "key"), ("SVC_AKISMET_URL", &self.url)]
    }

    /// Responds to one request with `spam`, after `meanwhile`. Returns the request's form.
    pub(crate) async fn answer(&self, spam: bool, meanwhile: impl Future<Output = ()>) -> BTreeMap<String, String> {
        let asked = tokio::time::timeout(PATIENCE, self.listener.accept()).await;
        let (mut stream, _) = asked.expect("the service asks the spam check").unwrap();
        let mut request = Vec::new();
        while !is_whole(&request) {
            assert!(stream.read_buf(&mut request).await.unwrap() > 0, "the request ends early");
        }
        meanwhile.await;
        let body = spam.to_string();
        let answer = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
        let request = String::from_utf8(request).unwrap();
        let (_, form) = request.split_once("\r\n\r\n").unwrap();
        form_urlencoded::parse(form.as_bytes()).into_owned().collect()
    }
}

/// Whether the body has the length given in the header.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    body.len() >= length.parse().unwrap()
}

/// A world with one comment by Ada, whose text is `old`.
struct Scene {
    world: World,
    id: u64,
}

fn ada(world: &World) -> Actor {
    world.user(7, "Ada")
}

impl Scene {
    async fn pending() -> Self {
        let world = World::with(&[HELD]);
        let id = ada(&world).comment("posts/1", "old").await;
        Self { world, id }
    }

    async fn approved() -> Self {
        let scene = Self::pending().await;
        scene.judge("approve").await;
        scene
    }

    async fn judge(&self, verdict: &str) {
        self.world.moderator().judge(self.id, verdict).await.ok(200);
    }

    async fn stored(&self) -> Comment {
        let found = self.world.store().comment_with_ancestors(CommentId(self.id), Reading::Consistent).await.unwrap();
        found.expect("the comment exists").comment
    }

    /// Stores an edit of the body to `new`.
    async fn edit(&self, review: bool) {
        let edit =
            Edit { body: "new".to_owned(), mentions: Vec::new(), at: self.world.now(), judgment: judgment(review) };
        self.world.store().edit(&self.stored().await, edit).await.unwrap().expect("the comment exists");
    }

    /// Makes a moderator's decision about a comment as it was read earlier.
    async fn decide(&self, read: Comment, verdict: Verdict) {
        let now = self.world.now();
        let clock = Clock::new(move || now);
        let ids = IdSource::new(clock.clone(), Random::system());
        let by = By { id: UserId(1), name: "Mod", ids: &ids, clock: &clock };
        let decided = self.world.store().decide(read, &verdict, None, by).await.unwrap();
        assert_eq!(decided, Decided::Done);
    }

    /// Checks that the comment is in these queues and no others, and that the table is consistent.
    async fn is_queued(&self, queues: &[&str]) {
        for state in ["pending", "reported", "rejected"] {
            let queue = self.world.moderator().queue(state).await;
            assert_eq!(queue.contains(&self.id), queues.contains(&state), "{state}");
        }
        assert_eq!(self.world.findings().await, [""; 0]);
    }

    async fn everyone_sees(&self, body: &str) {
        assert_eq!(self.world.guest().see("posts/1", self.id).await["body"], body);
    }
}

#[tokio::test]
async fn an_approval_of_a_text_that_has_changed_leaves_the_new_text_in_the_queue() {
    let scene = Scene::pending().await;
    let seen = scene.stored().await;
    scene.edit(true).await;
    scene.decide(seen, Verdict::Approve).await;
    let approved = scene.stored().await;
    assert!(approved.is_approved() && approved.in_review);
    assert_eq!(approved.verdicts, judgment(true).verdicts, "they are of the text that nobody has looked at");
    scene.everyone_sees("new").await;
    scene.is_queued(&["pending"]).await;
    scene.judge("approve").await;
    scene.is_queued(&[]).await;
    assert_eq!(scene.stored().await.verdicts, []);
}

#[tokio::test]
async fn an_approval_of_an_earlier_text_does_not_end_the_review_of_a_doubtful_edit() {
    let scene = Scene::approved().await;
    let seen = scene.stored().await;
    scene.edit(true).await;
    scene.decide(seen, Verdict::Approve).await;
    scene.is_queued(&["pending"]).await;
}

#[tokio::test]
async fn dismissing_reports_leaves_a_doubtful_edit_that_came_meanwhile_in_the_queue() {
    let scene = Scene::approved().await;
    scene.world.user(8, "Bob").report(scene.id, "spam").await.ok(201);
    let seen = scene.stored().await;
    scene.edit(true).await;
    scene.decide(seen, Verdict::Dismiss).await;
    scene.is_queued(&["pending"]).await;
}

#[tokio::test]
async fn a_comment_that_is_checked_while_its_writer_gets_a_new_name_has_the_new_name() {
    for spam in [false, true] {
        let (world, check) = (World::new(), SlowCheck::start().await);
        let checked = world.again(&check.settings());
        let byron = checked.user(7, "Ada Byron");
        let old = byron.get("ui").await.ok(200);
        assert_eq!(old.data()["auth"]["user"]["name"], "Ada Byron");
        world.pass(Duration::from_secs(1));
        let rename = async {
            world.user(7, "Ada Lovelace").get("ui").await.ok(200);
            world.wait_until_idle().await;
        };
        let (written, _) = tokio::join!(byron.write("posts/1", None, "new"), check.answer(spam, rename));
        let id = written.ok(201).id();
        world.finish_jobs().await;
        let shown = world.moderator().get(&format!("comments/{id}")).await.ok(200);
        assert_eq!(shown.data()["user"]["name"], "Ada Lovelace", "{spam}");
    }
}
