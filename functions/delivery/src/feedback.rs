//! Bounces and complaints, which SES reports through SNS, perhaps days later. The tag of the mail names the recipient. A
//! report about an address that the recipient no longer has changes nothing.

use serde_json::Value;
use shared::app::App;
use shared::aws::ses::RECIPIENT;
use shared::domain::mail_keys::Recipient;
use shared::domain::mailbox::Mailbox;
use shared::error::Fault;

/// `text` is the event as JSON. When the topic is set up, SES sends a plain sentence instead.
pub(crate) async fn follow(app: &App, text: &str) -> Result<(), Fault> {
    let Ok(event) = serde_json::from_str::<Value>(text) else { return Ok(()) };
    let mail = &event["mail"];
    let Some(recipient) = mail["tags"][RECIPIENT][0].as_str() else { return Ok(()) };
    let recipient = Recipient(recipient.to_owned());
    if recipient.is_moderators() {
        tracing::warn!("a digest for moderators bounced; see SVC_MODERATION_MAIL");
        return Ok(());
    }
    let keys = app.mail_keys();
    let sent_to = mail["destination"][0].as_str().map(|address| keys.plain_address(address));
    let has_address = |mailbox: &Mailbox| {
        let mut present = mailbox.addresses().filter_map(|address| keys.address(&address.sealed));
        present.any(|address| Some(address) == sent_to)
    };
    match event["eventType"].as_str() {
        // Others pass, and SES tries again by itself.
        Some("Bounce") if event["bounce"]["bounceType"] == "Permanent" => {
            let bounce = |mailbox: &mut Mailbox| {
                if has_address(mailbox) {
                    mailbox.bounce();
                }
            };
            app.store.change_mailbox(&recipient, bounce).await.map(drop)
        }
        Some("Complaint") if has_address(&app.store.mailbox(&recipient).await?) => {
            app.stop_mails(&recipient, sent_to.as_deref()).await
        }
        _ => Ok(()),
    }
}
