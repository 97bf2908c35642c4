//! POST `{type}/{id}/comments` (spec, section 4.2).

use shared::app::App;
use shared::app::admission::AuthRequirement;
use shared::app::spam_check::Draft;
use shared::domain::comment::{Comment, State};
use shared::domain::ids::{CommentId, ThreadId};
use shared::domain::markdown;
use shared::domain::rate_limit::RateClass;
use shared::domain::spam::Verdict;
use shared::domain::user::gravatar;
use shared::domain::viewer::Viewer;
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::input::Input;
use shared::http::request::{Call, Credential};
use shared::http::resource::{CommentPresenter, Data};
use shared::http::response::Answer;
use shared::policy;
use shared::store::Reading;
use shared::store::comments::Created;
use shared::store::idempotency::PriorResult;

/// Characters of a guest's name.
const MAX_GUEST_NAME: usize = 100;
/// Characters of an e-mail address (RFC 5321).
const MAX_EMAIL: usize = 254;

struct CreateInput {
    body: String,
    parent: Option<CommentId>,
    subscribe: bool,
    guest_name: String,
    guest_email: Option<String>,
}

impl CreateInput {
    /// What is asked of guests is not looked at for users.
    fn read(app: &App, call: &Call, guest: bool) -> Result<Self, Refusal> {
        let mut input = Input::new(call.json()?);
        let body = input.body();
        let parent = input.optional_id("parent_id").map(CommentId);
        let subscribe = input.flag("subscribe_to_replies");
        let (mut guest_name, mut guest_email) = (String::new(), None);
        if guest {
            guest_name = input.required_text("guest_name", MAX_GUEST_NAME);
            if guest_name.chars().any(char::is_control) {
                input.fail("guest_name", "The guest_name may not contain control characters.");
            }
            input.refuse_bidi_overrides("guest_name", &guest_name);
            if app.config.guests.require_email {
                guest_email = Some(input.required_text("guest_email", MAX_EMAIL)).filter(|email| !email.is_empty());
            } else {
                guest_email = input.optional_text("guest_email", MAX_EMAIL).filter(|email| !email.is_empty());
            }
            if guest_email.as_ref().is_some_and(|email| !is_email(email)) {
                input.fail("guest_email", "The guest_email must be an e-mail address.");
            }
        }
        input.finish()?;
        Ok(Self { body, parent, subscribe, guest_name: guest_name.trim().to_owned(), guest_email })
    }
}

pub(crate) async fn create(app: &App, call: &Call, kind: &str, record: &str) -> Result<Answer> {
    let config = &app.config;
    let thread = super::thread_id(app, kind, record);
    let exists = thread.as_ref().map(drop).map_err(Clone::clone);
    let read = async {
        let thread = thread?;
        let input = CreateInput::read(app, call, matches!(call.credential, Credential::None))?;
        let (visitor, idempotency) = (app.visitor(call), app.idempotency(call)?);
        let parent = async {
            match input.parent {
                Some(parent) => app.store.find(parent, Reading::Eventual).await,
                None => Ok(None),
            }
        };
        let handles = app.store.known_handles(markdown::mentions(&input.body));
        let known = app.store.thread_and_visitor_state(&thread, &visitor);
        let read = tokio::try_join!(parent, handles, known, app.store.prior_result(idempotency.as_ref()))?;
        Ok((thread, input, idempotency, read))
    };
    let auth = AuthRequirement::GuestsIf(config.guests.allowed);
    let (viewer, (thread, input, idempotency, read)) =
        app.admit_with(call, RateClass::Write, exists, auth, read).await?;
    let (found, mentions, (known, visitor_state), earlier) = read;
    let show = |comment: &Comment| {
        // An answer that is given again is the same to the letter, unless the comment has changed.
        let presenter = CommentPresenter {
            config,
            viewer: &viewer,
            thread: &known,
            visitor_state: &visitor_state,
            now: comment.id.created_at(),
            language: call.language(),
        };
        Answer::created(&Data { data: presenter.present(comment) })
    };
    match earlier {
        PriorResult::Nothing => {}
        PriorResult::Same(id) => return Ok(show(&created_before(app, id).await?)),
        PriorResult::Other => return Err(FieldErrors::used_key().into()),
    }
    let found =
        app.store.confirm(found, |found| policy::in_lists(&viewer.visitor, &found.comment, &found.ancestors)).await?;
    if input.parent.is_some() {
        let (parent, ancestors) =
            found.as_ref().map_or((None, [].as_slice()), |found| (Some(&found.comment), found.ancestors.as_slice()));
        policy::reply(config, &viewer, &thread, parent, ancestors)?;
    }
    let draft = Draft {
        body: &input.body,
        author: viewer.user.as_ref().map_or(input.guest_name.as_str(), |user| user.name.as_str()),
        email: input.guest_email.as_deref(),
        edit: false,
    };
    let verdict = app.screen(call, &viewer, draft).await?;
    if verdict == Verdict::Deny {
        return Err(Refusal::SpamRejected.into());
    }
    let held = config.require_approval || verdict == Verdict::Review;
    let state = if held { State::Pending } else { State::Approved };
    let parent = found.map(|found| found.comment);
    let ancestors = parent.iter().flat_map(|parent| parent.ancestors.iter().copied().chain([parent.id])).collect();
    let comment = written(&viewer, thread, input, ancestors, mentions, state);

    let embedded = config.lists.replies_per_parent;
    match app.store.create(&app.ids, comment, parent, &visitor_state, embedded, idempotency.as_ref()).await? {
        Created::Done(comment) => Ok(show(&comment)),
        // The parent was there a moment ago.
        Created::ParentGone => Err(policy::missing_parent().into()),
        Created::Before => match app.store.prior_result(idempotency.as_ref()).await? {
            PriorResult::Same(id) => Ok(show(&created_before(app, id).await?)),
            _ => Err(FieldErrors::used_key().into()),
        },
    }
}

/// What an earlier request with the same key created, as it is now.
async fn created_before(app: &App, id: CommentId) -> Result<Comment> {
    let found = app.store.find(id, Reading::Consistent).await?;
    Ok(found.ok_or(Refusal::NotFound)?.comment)
}

fn written(
    viewer: &Viewer,
    thread: ThreadId,
    input: CreateInput,
    ancestors: Vec<CommentId>,
    mentions: Vec<String>,
    state: State,
) -> Comment {
    let (name, avatar) = match &viewer.user {
        Some(user) => (user.name.clone(), user.avatar.clone()),
        None => (input.guest_name, input.guest_email.as_deref().map(gravatar).unwrap_or_default()),
    };
    Comment {
        ancestors,
        user: viewer.user_id(),
        guest: viewer.user.is_none().then(|| viewer.visitor.clone()),
        name,
        avatar,
        by_moderator: viewer.moderator,
        body: input.body,
        mentions,
        state,
        subscribed: input.subscribe,
        ..Comment::blank(thread)
    }
}

/// One `@`, a local part, and a domain of letters, digits, dots and hyphens: what mail servers take, without quoting.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let plain = |c: char| c.is_alphanumeric() || "!#$%&'*+/=?^_`{|}~-".contains(c);
    let local_ok = local.split('.').all(|part| !part.is_empty() && part.chars().all(plain));
    let label = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_alphanumeric() || c == '-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    local_ok && local.len() <= 64 && domain.contains('.') && domain.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::is_email;

    #[test]
    fn an_email_address_has_a_local_part_and_a_domain() {
        for good in ["ada@example.org", "a.b+c@sub.example.co", "ø@exämple.org"] {
            assert!(is_email(good), "{good}");
        }
        for bad in [
            "",
            "ada",
            "@example.org",
            "ada@",
            "ada@localhost",
            "a b@example.org",
            "a..b@example.org",
            "a@b@example.org",
            "ada@-x.org",
            "ada@example.org\nBcc: x",
        ] {
            assert!(!is_email(bad), "{bad}");
        }
    }
}
