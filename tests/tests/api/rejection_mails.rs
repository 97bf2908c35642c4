//! Emails to the writers of rejected comments.

use http::header::ACCEPT_LANGUAGE;
use serde_json::json;
use tests::{MAIL, by_guest, wants};

use crate::mails::{choose, links, member, press, sent, subjects, subscribe, subscribe_as_guest, world};

#[tokio::test]
async fn the_writer_gets_an_email_with_the_text_the_reason_and_the_note() {
    let world = world();
    let (ada, bob) = (member(&world, 7, "Ada"), member(&world, 8, "Bob"));
    let parent = bob.comment("posts/1", "what Bob says").await;
    let long = format!("my own text {}", "word ".repeat(200));
    let comment = json!({ "body": long, "parent_id": parent, "subscribe_to_replies": true });
    let id = ada.post("posts/1/comments", comment).await.ok(201).id();
    world.moderator().reject(id, "off_topic", "Please ask\nin the <forum>.").await.ok(200);
    let mails = sent(&world).await;
    assert_eq!(subjects(&mails), ["ada@example.org: Your comment was not approved: posts/1"]);
    for (body, note) in [
        (&mails[0].text, "From the moderators: Please ask\r\nin the <forum>."),
        (&mails[0].html, "From the moderators: Please ask<br />\r\nin the &lt;forum&gt;."),
    ] {
        assert!(body.contains(long.trim()) && body.contains("Reason: Off topic") && body.contains(note), "{body}");
        assert!(body.contains(&format!("https://www.example.org/posts/1#comment-{id}")), "{body}");
        for third in ["Bob", "Mod", "what"] {
            assert!(!body.contains(third), "{third}: {body}");
        }
    }
    // Repeating the rejection with another reason sends no second email.
    world.moderator().reject(id, "illegal", "again").await.ok(200);
    assert_eq!(sent(&world).await.len(), 1);
}

#[tokio::test]
async fn the_rejection_of_a_held_comment_is_announced() {
    let world = world();
    let held = world.again(&[&MAIL[..], &[("SVC_REQUIRE_APPROVAL", "true")]].concat());
    let (asking, member_on) = (member(&held, 7, "Ada"), member(&held, 8, "Bob"));
    choose(&member_on, wants(&["replies"])).await;
    let ids = [subscribe(&asking, "posts/1").await, member_on.comment("posts/1", "x").await];
    for id in ids {
        held.moderator().judge(id, "reject").await.ok(200);
    }
    let mut mails = subjects(&sent(&held).await);
    mails.sort();
    assert_eq!(
        mails,
        [
            "ada@example.org: Your comment was not approved: posts/1",
            "bob@example.org: Your comment was not approved: posts/1",
        ]
    );
}

#[tokio::test]
async fn spam_undone_rejections_and_missing_subscriptions_cause_no_email() {
    let world = world();
    let (ada, bob, moderator) = (member(&world, 7, "Ada"), member(&world, 8, "Bob"), world.moderator());
    moderator.reject(subscribe(&ada, "posts/1").await, "spam", "no").await.ok(200);
    moderator.reject(bob.comment("posts/1", "never asked").await, "other", "no").await.ok(200);
    let undone = subscribe(&ada, "posts/2").await;
    moderator.reject(undone, "other", "no").await.ok(200);
    moderator.judge(undone, "approve").await.ok(200);
    let gone = subscribe(&ada, "posts/3").await;
    moderator.reject(gone, "other", "no").await.ok(200);
    ada.remove(gone).await.ok(204);
    assert_eq!(subjects(&sent(&world).await), [""; 0]);
    // A comment may be rejected again after an undone rejection.
    moderator.reject(undone, "offensive", "yes").await.ok(200);
    let mails = sent(&world).await;
    assert_eq!(subjects(&mails), ["ada@example.org: Your comment was not approved: posts/2"]);
    assert!(mails[0].text.contains("Reason: Offensive"), "{}", mails[0].text);
}

#[tokio::test]
async fn a_guest_gets_emails_only_at_a_confirmed_address() {
    let world = world();
    let (guest, moderator) = (world.guest(), world.moderator());
    let held = world.again(&[&MAIL[..], &[("SVC_REQUIRE_APPROVAL", "true")]].concat());
    let same = held.guest().from("10.9.9.9");
    let unknown = subscribe_as_guest(&same, "grace@example.org").await;
    moderator.reject(unknown, "other", "no").await.ok(200);
    assert_eq!(subjects(&sent(&world).await), [""; 0], "no address is asked because of a rejection");
    subscribe_as_guest(&guest, "ada@example.org").await;
    press(&guest, &links(&sent(&world).await[0])[0], "action=confirm").await.ok(200);
    let known = subscribe_as_guest(&guest, "ada@example.org").await;
    moderator.reject(known, "other", "no").await.ok(200);
    assert_eq!(subjects(&sent(&world).await)[1..], ["ada@example.org: Your comment was not approved: posts/1"]);
}

#[tokio::test]
async fn an_address_notified_of_a_comment_can_also_be_notified_of_its_rejection() {
    let world = world();
    let (laptop, phone) = (world.guest(), world.guest());
    let asked = subscribe_as_guest(&laptop, "ada@example.org").await;
    press(&laptop, &links(&sent(&world).await[0])[0], "action=confirm").await.ok(200);
    subscribe_as_guest(&phone, "ada@example.org").await;
    press(&phone, &links(&sent(&world).await[1])[0], "action=confirm").await.ok(200);
    let mut reply = by_guest("from the other device");
    reply["guest_email"] = json!("ada@example.org");
    reply["subscribe_to_replies"] = json!(true);
    reply["parent_id"] = json!(asked);
    let reply = phone.post("posts/1/comments", reply).await.ok(201).id();
    let mails = subjects(&sent(&world).await)[2..].to_vec();
    assert_eq!(mails, ["ada@example.org: Grace replied to your comment: posts/1"]);
    world.moderator().reject(reply, "other", "no").await.ok(200);
    let mails = subjects(&sent(&world).await)[3..].to_vec();
    assert_eq!(mails, ["ada@example.org: Your comment was not approved: posts/1"]);
}

#[tokio::test]
async fn emails_about_rejections_are_in_four_languages() {
    let world = world();
    for (id, language, subject, reason) in [
        (20, "en", "Your comment was not approved:", "Reason: Off topic"),
        (21, "de", "Dein Kommentar wurde nicht freigegeben:", "Grund: Am Thema vorbei"),
        (22, "es", "Tu comentario no ha sido aprobado:", "Motivo: Fuera de tema"),
        (23, "fr", "Votre commentaire n’a pas été approuvé\u{a0}:", "Motif\u{a0}: Hors sujet"),
    ] {
        let writer = member(&world, id, &format!("Writer{id}")).with(ACCEPT_LANGUAGE, language);
        let comment = subscribe(&writer, "posts/1").await;
        world.moderator().reject(comment, "off_topic", "no").await.ok(200);
        let mails = sent(&world).await;
        let mail = mails.last().unwrap();
        assert!(mail.subject.starts_with(subject) && mail.text.contains(reason), "{} {}", mail.subject, mail.text);
    }
}

#[tokio::test]
async fn one_email_covers_rejections_and_replies() {
    let world = world();
    let (ada, bob) = (member(&world, 7, "Ada"), member(&world, 8, "Bob"));
    let ids = [subscribe(&ada, "posts/1").await, subscribe(&ada, "posts/2").await];
    bob.reply("posts/1", ids[0], "an answer").await;
    world.moderator().reject(ids[1], "other", "no").await.ok(200);
    assert_eq!(subjects(&sent(&world).await), ["ada@example.org: 2 comment notifications"]);
}
