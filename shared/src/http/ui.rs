//! The widget's configuration for one viewer: the response of `ui`, which lists can include.

use serde_json::{Value, json};

use crate::config::Config;
use crate::domain::language::Language;
use crate::domain::sign_in::providers::{Method, Provider};
use crate::domain::texts::Labels;
use crate::domain::time::Timestamp;
use crate::domain::viewer::Viewer;
use crate::domain::webhook::EventKind;
use crate::http::input::{MAX_BODY, MAX_REPORT_DETAILS};
use crate::http::resource::Visitor;
use crate::policy;

#[must_use]
pub fn configuration(config: &Config, viewer: &Viewer, labels: Labels, now: Timestamp) -> Value {
    let sign_in_methods = sign_in_methods(config, &labels);
    json!({
        "labels": labels,
        "features": features(config),
        "report_reasons": config.report_reasons,
        "theme": config.theme,
        "default_sort": config.lists.default_sort.name(),
        "per_page": config.lists.per_page,
        "users_route_prefix": config.users_route_prefix,
        "guest": {
            "require_email": config.guests.require_email,
            "show_gravatar": config.guests.show_gravatar,
            "likes": config.guests.likes,
        },
        "limits": {
            "body": MAX_BODY,
            "report_details": MAX_REPORT_DETAILS,
            "media_bytes": config.media_max_bytes,
        },
        "feeds": config.features.feeds,
        "sign_in": config.sign_in.is_some(),
        "sign_in_methods": sign_in_methods,
        "auth": auth(config, viewer, now),
    })
}

/// The moderation page's configuration: the widget's configuration with the page's own texts, and the webhook events.
#[must_use]
pub fn configuration_of_moderation(config: &Config, viewer: &Viewer, language: Language, now: Timestamp) -> Value {
    let mut configuration = configuration(config, viewer, Labels::of_moderation(language), now);
    configuration["webhook_events"] = json!(EventKind::OF_COMMENTS.map(EventKind::name));
    configuration
}

/// The sign-in methods, as shown on their buttons.
fn sign_in_methods(config: &Config, labels: &Labels) -> Value {
    let Some(sign_in) = &config.sign_in else { return json!([]) };
    let name = |method: Method| match method {
        Method::Email => labels.text("sign_in_email"),
        Method::Provider(Provider::GitHub) => "GitHub",
        Method::Provider(Provider::Google) => "Google",
        Method::Provider(Provider::Oidc) => &sign_in.oidc_name,
    };
    sign_in.methods.iter().map(|method| json!({ "id": method.id(), "name": name(*method) })).collect()
}

fn features(config: &Config) -> Value {
    let features = &config.features;
    json!({
        "sorting": features.sorting,
        "reporting": features.reporting,
        "nesting": features.nesting,
        "read_only": config.read_only,
        "emoji_picker": features.emoji_picker,
        "markdown_toolbar": features.markdown_toolbar,
        "markdown_preview": features.markdown_preview,
        "guests": config.guests.allowed,
        "media": features.media,
        "subscriptions": features.subscriptions,
        "realtime": features.realtime,
        "badges": features.badges,
        "pins": features.pins,
    })
}

fn auth(config: &Config, viewer: &Viewer, now: Timestamp) -> Value {
    let user = viewer.user.as_ref().map(|user| Visitor::new(config, user, now));
    json!({
        "authenticated": user.is_some(),
        "moderator": viewer.is_moderator(),
        "banned": viewer.banned,
        "can_comment": policy::comment(config, viewer).is_ok(),
        "user": user,
    })
}
