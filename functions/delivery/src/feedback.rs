//! Bounces and complaints, which SES reports through SNS, sometimes days later. A tag of the email names the recipient.
//! Their notifications stop only if they still have the address, but sign-in codes to the address stop for a while
//! regardless. Feedback on emails to moderators is only logged.

use serde_json::Value;
use shared::app::App;
use shared::aws::ses::RECIPIENT;
use shared::domain::mail_keys::Recipient;
use shared::domain::notifications::{Enrolment, NotificationState};
use shared::error::Fault;

/// `text` is the event as JSON. When the topic is set up, SES sends a plain sentence instead.
pub(crate) async fn follow(app: &App, text: &str) -> Result<(), Fault> {
    let Ok(event) = serde_json::from_str::<Value>(text) else { return Ok(()) };
    let mail = &event["mail"];
    let Some(recipient) = mail["tags"][RECIPIENT][0].as_str() else { return Ok(()) };
    let recipient = Recipient(recipient.to_owned());
    if recipient.is_moderators() {
        tracing::warn!("an email to moderators bounced or was reported as spam; check SVC_MODERATION_MAIL");
        return Ok(());
    }
    let kind = event["eventType"].as_str();
    // Other bounces may be temporary.
    let is_bounce = kind == Some("Bounce") && event["bounce"]["bounceType"] == "Permanent";
    let destination = mail["destination"][0].as_str();
    if let Some(address) = destination.filter(|_| is_bounce || kind == Some("Complaint")) {
        app.stop_codes(address, recipient.gets_codes()).await?;
    }
    if recipient.gets_codes() {
        return Ok(());
    }
    let keys = app.mail_keys();
    let sent_to = destination.map(|address| keys.plain_address(address));
    let has_address = |enrolment: &Enrolment| {
        let mut present = enrolment.addresses().filter_map(|address| keys.address(&address.sealed));
        present.any(|address| Some(address) == sent_to)
    };
    match kind {
        Some("Bounce") if is_bounce => {
            let bounce = |state: &mut NotificationState| {
                if has_address(&state.enrolment) {
                    state.bounce();
                }
            };
            app.store.change_notification_state(&recipient, bounce).await.map(drop)
        }
        Some("Complaint") if has_address(&app.store.notification_state(&recipient).await?.enrolment) => {
            app.stop_mails(&recipient, sent_to.as_deref()).await
        }
        _ => Ok(()),
    }
}
