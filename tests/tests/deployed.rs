//! Calls every route over HTTP: on the service at `SERVICE_URL`, whose tokens `SVC_JWT_SECRET` signs, or else on a
//! service in this process. The comments are posted to a separate thread.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lambda_events::event::s3::{S3Event, S3EventRecord};
use http::Method;
use http::header::{ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, IF_NONE_MATCH, ORIGIN};
use serde_json::{Value, json};
use server::access::Access;
use server::settings::MEDIA;
use shared::domain::ids::CommentId;
use shared::domain::job::{CleanUp, Job};
use shared::routes::{self, ROUTES};
use tests::{Actor, MAIL, Remote, SECRET, SIGN_IN, TestResponse, WEBHOOKS, World, code, ids, seen, wants};
use thumbnails::Thumbnails;
use tokio::net::TcpListener;

const UPLOAD: &[u8] = include_bytes!("../events/upload.png");
/// The origin of a page with the widget.
const PAGE: &str = "https://blog.example";
/// The moderator of the service in this process.
const OWNER: &str = "owner@example.org";
/// An address for which Amazon SES accepts emails, even in its sandbox.
const NOBODY: &str = "success@simulator.amazonses.com";
/// Maximum wait for indexes, and for the function behind the table's stream.
const PATIENCE: Duration = Duration::from_secs(20);

/// Repeats the request until `right` accepts the response.
async fn soon<A: Future<Output = TestResponse>>(
    ask: impl Fn() -> A,
    right: impl Fn(&TestResponse) -> bool,
) -> TestResponse {
    let mut waited = Duration::ZERO;
    loop {
        let reply = ask().await;
        if right(&reply) {
            return reply;
        }
        assert!(waited < PATIENCE, "still {} {:#}", reply.status, reply.json);
        tokio::time::sleep(Duration::from_millis(200)).await;
        waited += Duration::from_millis(200);
    }
}

/// Several users, because each function must see a user who is new to it.
struct Cast {
    ada: Actor,
    bob: Actor,
    cem: Actor,
    eve: Actor,
    fay: Actor,
    gus: Actor,
    joy: Actor,
    moderator: Actor,
}

struct Walk<'a> {
    service: &'a Remote,
    cast: Cast,
    guest: Actor,
    thread: String,
}

/// A thread's numbers in the responses of `counts`, `changes` and the feed. Nothing counts unless a function follows
/// the table's stream.
#[derive(Debug, PartialEq)]
struct Counted {
    count: u64,
    changed: u64,
    newest: usize,
    entries: usize,
}

/// Comments that remain for the test of the functions that events invoke.
struct Remaining {
    /// The remaining parent, one of its replies, and a rejected reply to the deleted parent.
    kept: u64,
    reply: u64,
    orphan: u64,
    thumbnail: String,
}

impl<'a> Walk<'a> {
    fn new(service: &'a Remote) -> Self {
        let cast = Cast {
            ada: service.user(1, "Ada"),
            bob: service.user(2, "Bob"),
            cem: service.user(3, "Cem"),
            eve: service.user(4, "Eve"),
            fay: service.user(5, "Fay"),
            gus: service.user(6, "Gus"),
            joy: service.user(8, "Joy"),
            moderator: service.moderator(7, "Grace"),
        };
        Self { service, cast, guest: service.guest(), thread: service.thread() }
    }

    async fn all(&self) -> Remaining {
        self.widget().await;
        self.names().await;
        let thumbnail = self.images().await;
        let parents = self.writing().await;
        let replies = self.answering(parents[0]).await;
        self.liking(&parents).await;
        self.lists(&parents, &replies).await;
        self.moderating(&parents).await;
        self.overseeing(&parents).await;
        self.banning().await;
        self.record().await;
        self.mails().await;
        self.signing_in().await;
        self.webhooks().await;
        self.without_bodies(&parents).await;
        self.mistakes().await;
        let orphan = self.deleting(&parents, &replies).await;
        Remaining { kept: parents[0], reply: replies[4], orphan, thumbnail }
    }

    async fn list(&self, who: &Actor, query: &str) -> TestResponse {
        who.list(&self.thread, query).await
    }

    fn handle(&self, name: &str) -> String {
        self.service.user_name(name).to_lowercase().replace(' ', "_")
    }

    async fn widget(&self) {
        let ui = self.guest.get("ui").await.ok(200);
        assert_eq!(ui.data()["auth"]["authenticated"], false);
        let again = self.guest.clone().with(IF_NONE_MATCH, ui.header("etag"));
        again.get("ui").await.ok(304);
        let auth = self.cast.ada.get("ui").await.ok(200).data()["auth"].clone();
        assert_eq!((&auth["authenticated"], &auth["user"]["id"]), (&json!(true), &json!(self.service.user_id(1))));

        let html = self.guest.post("markdown/preview", json!({ "body": "**Hello**" })).await.ok(200).data().clone();
        assert_eq!(html["html"], "<p><strong>Hello</strong></p>\n");
        let mention = json!({ "body": format!("@{}", self.handle("Ada")) });
        let preview = || self.guest.post("markdown/preview", mention.clone());
        soon(preview, |reply| reply.data()["html"].as_str().is_some_and(|html| html.contains("<a href="))).await;

        let contract = self.guest.get("openapi.json").await.ok(200).json;
        assert!(contract["openapi"].as_str().is_some_and(|version| version.starts_with("3.")));
        let docs = self.guest.get("docs").await.ok(200);
        assert!(docs.header("content-type").starts_with("text/html"));
        for (file, kind) in
            [("embed.js", "text/javascript"), ("moderation.js", "text/javascript"), ("moderate", "text/html")]
        {
            let reply = self.guest.get(file).await.ok(200);
            assert!(reply.header("content-type").starts_with(kind), "{file}");
            self.guest.clone().with(IF_NONE_MATCH, reply.header("etag")).get(file).await.ok(304);
        }
        let part = self.guest.get("embed/writer.0000000000000000.js").await.ok(200);
        assert_eq!(part.header("content-type"), "text/javascript; charset=utf-8");
    }

    async fn mails(&self) {
        let is_on = self.guest.get("ui").await.ok(200).data()["features"]["subscriptions"] == true;
        let ada = &self.cast.ada;
        let (shown, chosen) =
            (ada.get("me/notifications").await, ada.put("me/notifications", wants(&["replies"])).await);
        if is_on {
            assert_eq!(shown.ok(200).data()["state"], "off");
            chosen.invalid("email");
        } else {
            shown.refused(404, "not_found");
            chosen.refused(404, "not_found");
        }
        ada.delete("me/notifications").await.ok(204);
        assert!(self.guest.get("mail/x").await.ok(404).header("content-type").starts_with("text/html"));
        self.guest.post("mail/x", json!({})).await.ok(404);
    }

    /// Runs a sign-in as far as possible without the code.
    async fn signing_in(&self) {
        let is_on = self.guest.get("ui").await.ok(200).data()["sign_in"] == true;
        let post = async |path: &str, body: Value, status: u16| {
            self.guest.post(path, body).await.ok(if is_on { status } else { 404 });
        };
        post("sign_in", json!({ "email": NOBODY }), 201).await;
        // 400 with a page if the sign-in method is on, else 404.
        let callback = self.guest.get("sign_in/callback/github").await.status;
        assert!([400, 404].contains(&callback), "{callback}");
        post("sign_in/finish", json!({ "flow": "nothing", "code": "12345678" }), 422).await;
        post("sign_in/refresh", json!({ "refresh_token": "nothing" }), 422).await;
        post("sign_in/end", json!({ "refresh_token": "nothing" }), 204).await;
        // A user with the host's token gets the name from the token.
        let named = self.cast.joy.put("me/name", json!({ "name": "Eve" })).await;
        named.ok(if is_on { 403 } else { 404 });
    }

    /// Tests webhooks, unless they are off. They must be allowed to call this machine.
    async fn webhooks(&self) {
        let moderator = &self.cast.moderator;
        if moderator.get("moderation/webhooks").await.status == 404 {
            return;
        }
        let webhook = json!({ "url": "http://127.0.0.1:9/", "events": ["comment.created"] });
        let added = moderator.post("moderation/webhooks", webhook).await.ok(201);
        let path = format!("moderation/webhooks/{}", added.id());
        moderator.patch(&path, json!({ "events": ["comment.deleted"] })).await.ok(200);
        let sent = moderator.post(&format!("{path}/test"), json!({})).await.ok(202);
        let message = sent.data()["id"].as_str().unwrap();
        let was_tried = |list: &TestResponse| list.data()[0]["attempts"][0]["status"] == Value::Null;
        let list = format!("{path}/deliveries");
        assert_eq!(soon(|| moderator.get(&list), was_tried).await.data()[0]["id"], message);
        moderator.post(&format!("{path}/deliveries/{message}/redeliver"), json!({})).await.ok(202);
        moderator.delete(&path).await.ok(204);
    }

    async fn names(&self) {
        let name = self.service.user_name("Bob");
        let query = format!("users?q={}", name.replace(' ', "%20"));
        let found = soon(|| self.cast.bob.get(&query), |reply| reply.rows().len() == 1).await;
        assert_eq!((&found.rows()[0]["id"], &found.rows()[0]["name"]), (&json!(self.service.user_id(2)), &json!(name)));
        self.guest.get(&query).await.refused(401, "unauthenticated");
    }

    /// Uploads and removes images. Returns the URL of a remaining thumbnail.
    async fn images(&self) -> String {
        let fay = &self.cast.fay;
        let file: [(&str, &str, &[u8]); 1] = [("file", "a.png", UPLOAD)];
        let once = fay.clone().keyed(&self.thread);
        let stored = once.upload(&file).await.ok(201).json;
        assert_eq!(once.upload(&file).await.ok(201).json, stored);
        let image = self.service.fetch(stored["url"].as_str().unwrap()).await.ok(200);
        assert_eq!((image.header("content-type"), image.header("x-content-type-options")), ("image/png", "nosniff"));
        fay.upload(&[("file", "a.png", b"no image")]).await.invalid("file");

        let removed = fay.upload(&file).await.ok(201).json["url"].clone();
        let removed = removed.as_str().unwrap();
        let path = format!("media/{}", removed.rsplit('/').next().unwrap());
        fay.delete(&path).await.refused(403, "forbidden");
        self.cast.moderator.delete(&path).await.ok(204);
        assert_ne!(self.service.fetch(removed).await.status, 200);
        stored["thumbnail_url"].as_str().unwrap().to_owned()
    }

    /// Writes and edits comments. Returns the ids of five parents, oldest first.
    async fn writing(&self) -> Vec<u64> {
        let path = format!("{}/comments", self.thread);
        self.guest.post(&path, json!({ "body": "x" })).await.refused(401, "unauthenticated");
        self.cast.eve.post(&path, json!({ "body": "" })).await.invalid("body");
        let once = self.cast.eve.clone().keyed(&self.thread);
        let first = once.post(&path, json!({ "body": "0" })).await.ok(201).id();
        assert_eq!(once.post(&path, json!({ "body": "0" })).await.ok(201).id(), first);
        let mut parents = vec![first];
        for n in 1..5 {
            parents.push(self.cast.eve.comment(&self.thread, &n.to_string()).await);
        }
        let edited = self.cast.eve.edit(first, &format!("*0* @{}", self.handle("Ada"))).await.ok(200);
        let html = edited.data()["html"].as_str().unwrap();
        assert!(html.starts_with("<p><em>0</em> <a href=\"/users/"), "{html}");
        self.cast.bob.edit(first, "mine").await.refused(403, "forbidden");
        parents
    }

    async fn answering(&self, parent: u64) -> Vec<u64> {
        let replies = self.cast.ada.write_many(&self.thread, parent, 5).await;
        let path = format!("comments/{parent}/replies");
        soon(|| self.guest.get(&path), |reply| reply.total() == 5 && reply.ids().len() == 5).await;
        for query in ["per_page=2", "per_page=2&cursor="] {
            let path = format!("{path}?{query}");
            assert_eq!(self.guest.walk_both_ways(&path).await, replies, "{query}");
        }
        replies
    }

    async fn liking(&self, parents: &[u64]) {
        let like = async |who: &Actor, id: u64| who.like(id).await.ok(200).json;
        assert_eq!(like(&self.cast.cem, parents[1]).await, json!({ "liked": true, "likes_count": 1 }));
        assert_eq!(like(&self.cast.bob, parents[1]).await, json!({ "liked": true, "likes_count": 2 }));
        assert_eq!(like(&self.cast.bob, parents[2]).await, json!({ "liked": true, "likes_count": 1 }));
        assert_eq!(like(&self.cast.cem, parents[3]).await["liked"], true);
        assert_eq!(like(&self.cast.cem, parents[3]).await, json!({ "liked": false, "likes_count": 0 }));
    }

    async fn lists(&self, parents: &[u64], replies: &[u64]) {
        let newest: Vec<u64> = parents.iter().rev().copied().collect();
        let orders = [
            ("newest", newest.clone()),
            ("oldest", parents.to_vec()),
            ("most_liked", vec![parents[1], parents[2], parents[4], parents[3], parents[0]]),
            ("most_replied", vec![parents[0], parents[4], parents[3], parents[2], parents[1]]),
        ];
        for (sort, expected) in orders {
            let query = format!("sort={sort}");
            let first = soon(|| self.list(&self.guest, &query), |list| list.ids() == expected).await;
            assert_eq!(first.total(), 5);
            let public = format!("public/{}/comments?per_page=50&{query}", self.thread);
            assert_eq!(self.guest.get(&public).await.ok(200).ids(), expected, "{sort}");
            let pages = self.guest.walk(&public.replace("per_page=50", "per_page=2")).await;
            assert_eq!(seen(&pages), expected, "{sort}");
            let paginations: &[&str] = if sort.starts_with("most") { &[""] } else { &["", "&cursor="] };
            for pagination in paginations {
                let path = format!("{}/comments?sort={sort}&per_page=2{pagination}", self.thread);
                let pages = self.guest.walk(&path).await;
                assert_eq!((pages.len(), seen(&pages)), (3, expected.clone()), "{path}");
                assert_eq!(seen(&self.guest.walk_back(pages.last().unwrap()).await), expected, "{path}, back");
            }
        }
        let parent = self.list(&self.guest, "").await.find(parents[0]).unwrap();
        assert_eq!((&parent["replies_count"], ids(&parent["replies"])), (&json!(5), replies[..3].to_vec()));
        let page = self.guest.get(&format!("{}/comments.html?parent={}", self.thread, parents[0])).await.ok(200);
        assert!(page.json.as_str().is_some_and(|html| html.contains(&format!("id=\"comment-{}\"", replies[4]))));
        self.counted().await;
        let shown = self.guest.get(&format!("comments/{}", replies[4])).await.ok(200);
        assert_eq!((shown.id(), ids(&shown.json["ancestors"])), (replies[4], vec![parents[0]]));
        let with_ui = self.list(&self.cast.bob, "include=ui").await;
        assert_eq!(with_ui.json["ui"]["auth"]["user"]["id"], self.service.user_id(2));
        let liked = self.list(&self.cast.bob, "").await.find(parents[1]).unwrap();
        assert_eq!((&liked["liked"], &liked["likes_count"]), (&json!(true), &json!(2)));
    }

    async fn counted(&self) -> Counted {
        let counts = self.guest.get(&format!("counts?threads={},posts/nothing", self.thread)).await.ok(200);
        assert_eq!(counts.data()["posts/nothing"], 0);
        let changes = self.guest.get(&format!("{}/changes", self.thread)).await.ok(200);
        let feed = self.guest.get(&format!("{}/feed.atom", self.thread)).await.ok(200);
        Counted {
            count: counts.data()[&self.thread].as_u64().unwrap(),
            changed: changes.data()["count"].as_u64().unwrap(),
            newest: changes.data()["newest"].as_array().unwrap().len(),
            entries: feed.json.as_str().unwrap().matches("<entry>").count(),
        }
    }

    async fn moderating(&self, parents: &[u64]) {
        let moderator = &self.cast.moderator;
        let queue = |state: &str| {
            let path = format!("moderation/comments?state={state}&per_page=50");
            async move { moderator.get(&path).await.ok(200) }
        };
        let waits = |id: u64| move |queue: &TestResponse| queue.ids().contains(&id);
        let gone = |id: u64| move |queue: &TestResponse| !queue.ids().contains(&id);
        self.cast.ada.get("moderation/comments").await.refused(403, "forbidden");

        let reported = parents[3];
        self.cast.bob.report(reported, "spam").await.ok(201);
        self.cast.bob.report(reported, "spam").await.refused(409, "already_reported");
        let report = json!({ "reason": "other", "additional_details": "Look." });
        self.guest.post(&format!("comments/{reported}/report"), report).await.ok(201);
        soon(|| queue("reported"), waits(reported)).await;
        let path = format!("comments/{reported}/reports");
        let reports = moderator.get(&path).await.ok(200);
        assert_eq!(reports.rows().iter().map(|row| &row["reason"]).collect::<Vec<_>>(), ["other: Look.", "spam"]);
        moderator.post(&format!("{path}/dismiss"), Value::Null).await.ok(200);
        soon(|| queue("reported"), gone(reported)).await;

        assert_eq!(moderator.judge(reported, "reject").await.ok(200).data()["is_approved"], false);
        soon(|| queue("rejected"), waits(reported)).await;
        soon(|| self.list(&self.guest, ""), gone(reported)).await;
        self.guest.get(&format!("comments/{reported}/replies")).await.refused(404, "not_found");
        assert_eq!(moderator.judge(reported, "approve").await.ok(200).data()["is_approved"], true);
        soon(|| self.list(&self.guest, ""), waits(reported)).await;

        // A comment with ten links waits for a moderator.
        let links = "https://example.org/ ".repeat(10);
        let held = self.cast.bob.write(&self.thread, Some(parents[1]), &links).await.ok(201);
        assert_eq!(held.data()["is_approved"], false);
        let held = held.id();
        soon(|| queue("pending"), waits(held)).await;
        let replies = format!("comments/{}/replies", parents[1]);
        assert!(gone(held)(&self.guest.get(&replies).await.ok(200)));
        moderator.judge(held, "approve").await.ok(200);
        soon(|| queue("pending"), gone(held)).await;
        soon(|| self.guest.get(&replies), waits(held)).await;

        self.cast.eve.pin(parents[0]).await.refused(403, "forbidden");
        assert_eq!(moderator.pin(parents[0]).await.ok(200).data()["pinned"], true);
        soon(|| self.list(&self.guest, ""), |list| list.ids().first() == Some(&parents[0])).await;
        assert_eq!(moderator.unpin(parents[0]).await.ok(200).data()["pinned"], false);
        soon(|| self.list(&self.guest, ""), |list| list.ids().first() == parents.last()).await;
    }

    /// Tests the moderators' other lists, a bulk decision, and closing a thread.
    async fn overseeing(&self, parents: &[u64]) {
        let moderator = &self.cast.moderator;
        let eve = self.service.user_id(4);
        let path = format!("users/{eve}/comments?per_page=50");
        let written = soon(|| moderator.get(&path), |page| page.find(parents[4]).is_some()).await;
        assert_eq!(written.find(parents[4]).unwrap()["thread"]["type"], "posts");

        let edited = written.find(parents[0]).unwrap()["updated_at"].clone();
        let seen = json!({ parents[0].to_string(): "2020-01-01T00:00:00Z", parents[1].to_string(): edited });
        let bulk = json!({ "ids": [parents[0], parents[2], 1], "action": "reject", "seen": seen });
        let decided = moderator.post("moderation/comments", bulk).await.ok(200);
        let failed = json!([{ "id": parents[0], "code": "comment_changed" }, { "id": 1, "code": "not_found" }]);
        assert_eq!(decided.data(), &json!({ "done": [parents[2]], "failed": failed }));
        moderator.judge(parents[2], "approve").await.ok(200);
        soon(|| self.list(&self.guest, ""), |list| list.find(parents[2]).is_some()).await;
        let thread = &self.thread;
        for (decision, closed) in [("close", true), ("open", false)] {
            let decided = moderator.post(&format!("{thread}/{decision}"), Value::Null).await.ok(200);
            assert_eq!(decided.data(), &json!({ "closed": closed }));
            soon(|| self.list(&self.guest, ""), |list| list.json["meta"]["closed"] == closed).await;
        }
        let is_logged = |log: &TestResponse| {
            let is_approval = |row: &Value| row["action"] == "approve" && row["comment_id"] == parents[2];
            log.rows().iter().any(|row| is_approval(row) && row["user_id"] == eve)
        };
        soon(|| moderator.get("moderation/log?per_page=50"), is_logged).await;
    }

    async fn banning(&self) {
        let ban = format!("users/{}/ban", self.service.user_id(6));
        let banned = self.cast.moderator.put(&ban, json!({ "reason": "spam" })).await.ok(200);
        assert_eq!(
            banned.data(),
            &json!({ "user_id": self.service.user_id(6), "banned_until": null, "reason": "spam" })
        );
        let comments = format!("{}/comments", self.thread);
        let write = || self.cast.gus.post(&comments, json!({ "body": "" }));
        soon(write, |reply| reply.status == 403).await.refused(403, "comment_banned");
        let search = format!("moderation/users?q={}", self.service.user_name("Gus").replace(' ', "%20"));
        for path in ["moderation/users?banned=true&per_page=50", &search] {
            let is_banned =
                |found: &TestResponse| found.find(self.service.user_id(6)).is_some_and(|user| user["banned"] == true);
            soon(|| self.cast.moderator.get(path), is_banned).await;
        }
        self.cast.moderator.delete(&ban).await.ok(204);
        soon(write, |reply| reply.status != 403).await.invalid("body");
        // Bans again, through a comment. Without a trigger for jobs, recent comments are not rejected.
        let id = self.cast.gus.comment(&format!("{}-bans", self.thread), "x").await;
        let banned = self.cast.moderator.put(&format!("comments/{id}/ban"), json!({ "reject_recent": true })).await;
        assert_eq!(banned.ok(200).data()["user_id"], self.service.user_id(6));
        self.cast.moderator.delete(&ban).await.ok(204);
        self.cast.moderator.delete("moderation/networks/none/ban").await.ok(204);
    }

    async fn record(&self) {
        let known =
            json!({ "author_id": self.service.user_id(4), "title": "A walk", "url": "https://example.org/walk" });
        let record = self.cast.moderator.put(&self.thread, known).await.ok(200);
        assert_eq!((&record.data()["type"], &record.data()["title"]), (&json!("posts"), &json!("A walk")));
        let is_author = |list: &TestResponse| list.rows().iter().all(|row| row["is_author"] == true);
        soon(|| self.list(&self.guest, ""), is_author).await;
    }

    /// Calls HEAD on routes that everyone may read.
    async fn without_bodies(&self, parents: &[u64]) {
        let shown = format!("comments/{}", parents[1]);
        let mut of_thread = ["comments", "changes", "feed.atom"].map(|name| format!("{}/{name}", self.thread)).to_vec();
        of_thread.extend([format!("public/{}/comments", self.thread), format!("{}/comments.html", self.thread)]);
        let files = ["ui", "docs", "openapi.json", "embed.js", "embed/writer.0.js", "moderation.js", "moderate"]
            .map(str::to_owned);
        let others =
            [format!("{shown}/replies"), shown, format!("counts?threads={}", self.thread), "mail/x".to_owned()];
        for path in of_thread.iter().chain(&files).chain(&others) {
            let got = self.guest.get(path).await;
            let asked = self.guest.send(Method::HEAD, path, "").await.ok(got.status);
            assert!(asked.body.is_empty(), "{path}");
            assert_eq!(asked.headers.get("content-type"), got.headers.get("content-type"), "{path}");
        }
    }

    /// Sends a browser's preflight, as before a request from a page of another origin.
    async fn preflight(&self, method: &str, path: &str) {
        let page = self.guest.clone().with(ORIGIN, PAGE).with(ACCESS_CONTROL_REQUEST_METHOD, method);
        let page = page.with(ACCESS_CONTROL_REQUEST_HEADERS, "authorization,content-type");
        let allowed = page.send(Method::OPTIONS, path, "").await.ok(204);
        assert!(["*", PAGE].contains(&allowed.header("access-control-allow-origin")), "{path}");
        assert!(allowed.header("access-control-allow-methods").contains(method), "{path}");
        assert!(allowed.header("access-control-allow-headers").contains("authorization"), "{path}");
    }

    async fn mistakes(&self) {
        self.guest.get("pages/1/comments").await.refused(404, "not_found");
        self.guest.get("comments/1/replies").await.refused(404, "not_found");
        let nowhere = self.guest.get("nowhere").await;
        let wrong = self.guest.send(Method::POST, "ui", "").await;
        // `cargo lambda watch` has no `$default` route and returns this title with its own 404.
        if nowhere.json["title"] != "Default function disabled" {
            nowhere.refused(404, "not_found");
            self.preflight("POST", "comments/1/like").await;
        }
        assert_eq!(wrong.refused(405, "method_not_allowed").header("allow"), "GET, HEAD");
        self.preflight("PATCH", "comments/1").await;
        self.guest.clone().with_token("no.good.token").post("media", Value::Null).await.refused(401, "unauthenticated");
    }

    /// Deletes comments. Returns the id of a rejected reply to a deleted parent. A job removes the reply later.
    async fn deleting(&self, parents: &[u64], replies: &[u64]) -> u64 {
        let below = self.cast.ada.reply(&self.thread, parents[4], "below").await;
        let rejected = self.cast.ada.reply(&self.thread, parents[4], "rejected").await;
        self.cast.moderator.judge(rejected, "reject").await.ok(200);
        self.cast.ada.remove(parents[4]).await.refused(403, "forbidden");
        self.cast.eve.remove(parents[4]).await.ok(204);
        soon(|| self.guest.replies(parents[4], ""), |list| list.ids() == [below]).await;
        self.cast.ada.remove(below).await.ok(204);
        self.guest.get(&format!("comments/{}/replies", parents[4])).await.refused(404, "not_found");
        self.cast.ada.remove(replies[0]).await.ok(204);
        let list = soon(|| self.list(&self.guest, ""), |list| list.total() == 4 && list.ids().len() == 4).await;
        assert_eq!(list.find(parents[0]).unwrap()["replies_count"], 4);
        rejected
    }
}

/// Starts a service in this process on a free port. Returns it with the names of the routes called so far.
async fn serve() -> (World, Remote, Arc<Mutex<BTreeSet<&'static str>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let media = format!("{origin}/media");
    let owner = format!("email:{OWNER}");
    let own = [
        ("SVC_PUBLIC_URL", &*origin),
        ("MEDIA_BASE_URL", &media),
        ("SVC_CORS_ORIGINS", PAGE),
        ("SVC_MODERATORS", &owner),
    ];
    let features = MAIL.into_iter().chain(SIGN_IN).chain(WEBHOOKS);
    let features = features.filter(|(name, _)| *name != "SVC_ALLOW_GUESTS" && own.iter().all(|(own, _)| own != name));
    let world = World::with(&features.chain(own).collect::<Vec<_>>());
    let asked = Arc::new(Mutex::new(BTreeSet::new()));
    let log = Arc::clone(&asked);
    world.serve(listener, move |exchange| {
        let below = exchange.path.strip_prefix("/svc/api/v1/").unwrap_or_default();
        let route = routes::find(&exchange.method, &below.split('/').collect::<Vec<_>>());
        log.lock().unwrap().extend(route.map(|route| route.name));
    });
    (world, Remote::new(&format!("{origin}/svc/api/v1"), SECRET), asked)
}

/// The owner signs in twice with a code, chooses a name, and signs out everywhere.
async fn own_account(world: &World, service: &Remote) {
    let guest = service.guest();
    let mut session = Value::Null;
    for _ in 0..2 {
        let started = guest.post("sign_in", json!({ "email": OWNER })).await.ok(201);
        world.wait_until_idle().await;
        let mail = world.mails().into_iter().rfind(|mail| mail.to == OWNER).unwrap();
        let right = json!({ "flow": started.data()["flow"], "code": code(&mail) });
        session = guest.post("sign_in/finish", right).await.ok(200).data().clone();
    }
    let owner = guest.clone().with_token(session["access_token"].as_str().unwrap());
    owner.put("me/name", json!({ "name": "The Owner" })).await.ok(200);
    owner.get("moderation/comments").await.ok(200);
    let refreshed = guest.post("sign_in/refresh", json!({ "refresh_token": session["refresh_token"] })).await.ok(200);
    let end = json!({ "refresh_token": refreshed.data()["refresh_token"], "everywhere": true });
    guest.post("sign_in/end", end).await.ok(204);
    owner.get("moderation/comments").await.refused(401, "unauthenticated");
}

#[tokio::test]
async fn every_route_responds_over_http() {
    match (std::env::var_os("SERVICE_URL"), std::env::var_os("SVC_JWT_SECRET")) {
        (Some(url), Some(secret)) => {
            let service = Remote::new(url.to_str().unwrap(), secret.to_str().unwrap());
            Walk::new(&service).all().await;
        }
        (Some(_), None) => panic!("SERVICE_URL needs SVC_JWT_SECRET"),
        (None, _) => {
            let (_world, service, asked) = serve().await;
            Walk::new(&service).all().await;
            let all: BTreeSet<&str> = ROUTES.iter().map(|route| route.name).collect();
            assert_eq!(*asked.lock().unwrap(), all);
        }
    }
}

#[tokio::test]
async fn events_are_handled_and_no_function_has_a_permission_it_does_not_use() {
    let (world, service, _) = serve().await;
    let walk = Walk::new(&service);
    let left = walk.all().await;
    // Renames Ada.
    service.user(1, "Ada Lovelace").get("ui").await.ok(200);
    // Replies stop counting and then count again.
    for decision in ["reject", "approve"] {
        walk.cast.moderator.post(&format!("comments/{}/{decision}", left.kept), json!({})).await.ok(200);
        world.wait_until_idle().await;
    }
    // The job expects a reply that no index lists yet, so the job is sent again.
    let deleted_at = world.now();
    world.send_job(&Job::CleanUp(CleanUp { comment: CommentId(1), replies: 1, deleted_at })).await;
    world.wait_until_idle().await;

    assert_eq!(service.fetch(&left.thumbnail).await.ok(200).header("content-type"), "image/png");
    walk.cast.moderator.get(&format!("comments/{}/replies", left.orphan)).await.refused(404, "not_found");
    let kept = walk.list(&walk.guest, "").await.find(left.kept).unwrap();
    assert!(ids(&kept["replies"]).len() == 3 && kept["replies_count"] == 4, "{kept:#}");
    // Four parents, four replies to the first, and one reply that was held and then approved.
    assert_eq!(walk.counted().await, Counted { count: 9, changed: 9, newest: 9, entries: 9 });
    let replies = walk.guest.replies(left.kept, "").await;
    assert_eq!(replies.find(left.reply).unwrap()["user"]["name"], service.user_name("Ada Lovelace"));

    // One member subscribes through a comment. Another member, whose address is not verified, gets a confirmation
    // email.
    let member = |id: u64, name: &str, verified: bool| {
        let email = format!("{}@example.org", name.to_lowercase());
        world.claiming(&json!({ "sub": id.to_string(), "name": name, "email": email, "email_verified": verified }))
    };
    let (hal, ivy) = (member(80, "Hal", true), member(81, "Ivy", false));
    ivy.put("me/notifications", wants(&["mentions"])).await.ok(200);
    let asked = json!({ "body": "x", "subscribe_to_replies": true });
    let parent = hal.post("posts/mails/comments", asked).await.ok(201).id();
    // More users share this name than can be notified, so the service looks up which of them wrote in the thread.
    for id in 83..89 {
        member(id, "Kim", true).get("ui").await.ok(200);
    }
    ivy.reply("posts/mails", parent, "an answer to @hal and @kim").await;
    // The message is early, so it waits.
    world.wait_until_idle().await;
    world.send_delivery("u80");
    // Emails are refused at first, so the messages are redelivered.
    world.refuse_mails(1);
    world.finish_jobs().await;
    let to: BTreeSet<String> = world.mails().into_iter().map(|mail| mail.to).filter(|to| to != NOBODY).collect();
    assert_eq!(to.into_iter().collect::<Vec<_>>(), ["hal@example.org", "ivy@example.org"]);
    own_account(&world, &service).await;
    // An image may be deleted before its thumbnail is made.
    let role = world.roles().iter().find(|role| role.function == "thumbnails").unwrap();
    let (mut event, mut gone) = (S3Event::default(), S3EventRecord::default());
    gone.s3.bucket.name = Some(MEDIA.to_owned());
    gone.s3.object.key = Some("uploads/gone.png".to_owned());
    event.records.push(gone);
    Arc::clone(role).scope(Thumbnails::new(world.bucket().client()).handle(event)).await.unwrap();

    assert_eq!(world.roles().len(), 12);
    let of_role = |role: &Arc<Access>| {
        let name = |(action, part)| format!("{} {action} {part}", role.function);
        role.unused().into_iter().map(name).collect::<Vec<_>>()
    };
    let unused: BTreeSet<String> = world.roles().iter().flat_map(of_role).collect();
    let unused: Vec<String> = unused.into_iter().collect();
    // With this permission, S3 reports missing objects as missing instead of forbidden. The local bucket always does.
    assert_eq!(unused, ["media s3:ListBucket ", "thumbnails s3:ListBucket "]);
}
