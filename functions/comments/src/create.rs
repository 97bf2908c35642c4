//! POST `{type}/{id}/comments`.

use serde_json::Value;
use shared::app::App;
use shared::app::admission::{AuthRequirement, exists};
use shared::app::spam_check;
use shared::domain::avatar::Avatar;
use shared::domain::comment::{Comment, State, Subscription};
use shared::domain::email::{MAX_EMAIL, is_email, mailable};
use shared::domain::ids::{CommentId, ThreadId};
use shared::domain::markdown;
use shared::domain::notifications::Address;
use shared::domain::origin;
use shared::domain::rate_limit::RateClass;
use shared::domain::texts::Errors;
use shared::domain::thread::{PageInfo, Thread, VisitorThreadState};
use shared::domain::user::{User, gravatar};
use shared::domain::verdict::Judgment;
use shared::domain::viewer::Viewer;
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::input::Input;
use shared::http::request::{Call, Credential};
use shared::http::resource::{CommentPresenter, Data};
use shared::http::response::Answer;
use shared::policy;
use shared::store::Reading;
use shared::store::comments::{CommentWithAncestors, Created, NewComment};
use shared::store::idempotency::{IdempotencyRequest, PriorResult};
use shared::store::threads::ThreadForVisitor;

pub(crate) async fn create(app: &App, call: &Call, kind: &str, record: &str) -> Result<Answer> {
    let thread = policy::thread(&app.config, kind, record);
    let exists = exists(&thread);
    let auth = AuthRequirement::GuestsIf(app.config.guests.allowed);
    let load = async { load(app, call, thread?).await };
    let (viewer, (target, draft)) = app.admit_with_user(call, RateClass::Write, exists, auth, load).await?;
    let prior = draft.as_ref().ok().and_then(|draft| match draft.prior {
        PriorResult::Same(id) => Some(id),
        PriorResult::Nothing | PriorResult::Other => None,
    });
    let comment = match prior {
        Some(id) => created_before(app, id).await?,
        None => {
            policy::may_write_in(&app.config, &viewer, &target.thread, app.clock.now())?;
            policy::has_name(&viewer, call.language())?;
            let draft = draft?;
            if let (true, Some(user)) = (viewer.is_moderator(), &viewer.user) {
                app.keep_moderator_name(user).await?;
            }
            store(app, call, &viewer, &target, draft).await?
        }
    };
    // Times in words are relative to the comment's creation, so that a repeated request gets exactly the same response
    // unless the comment or the caller's rights have changed.
    let relative_to = comment.id.created_at();
    let presenter = app.presenter(call, &viewer, &target.thread, &target.visitor_state);
    let presenter = CommentPresenter { relative_to, ..presenter };
    Ok(Answer::created(&Data { data: presenter.present(&comment) }))
}

struct CreateInput {
    body: String,
    parent: Option<CommentId>,
    subscribe: bool,
    guest: Option<Guest>,
    /// Stored only with a top-level comment.
    page: Option<PageInfo>,
}

struct Guest {
    name: String,
    email: Option<String>,
}

impl CreateInput {
    /// Reads the request. Ignores the guest fields if a signed-in user sends them.
    fn read(app: &App, call: &Call) -> Result<Self, Refusal> {
        let mut input = Input::of_reader(call.json()?, call.language());
        let body = input.body();
        let parent = input.optional_id("parent_id").map(CommentId);
        let subscribe = input.flag("subscribe_to_replies");
        let is_guest = matches!(call.credential, Credential::None);
        let guest = is_guest.then(|| {
            Guest::read(&mut input, app.config.guests.require_email, subscribe && app.config.features.subscriptions)
        });
        let page = page(app, call, input.value("page"));
        input.finish()?;
        Ok(Self { body, parent, subscribe, guest, page })
    }
}

/// Returns the title and address that the page sent. Omits an address whose origin may not post here.
fn page(app: &App, call: &Call, page: Option<&Value>) -> Option<PageInfo> {
    let text = |name: &str| page?.get(name)?.as_str();
    let own = || origin::of(&call.base_url);
    let is_allowed = |origin: &str| app.config.cors_origins.names(origin) || own().is_some_and(|own| own == origin);
    PageInfo::new(text("title"), text("url"), is_allowed)
}

impl Guest {
    /// Reads the name and the email address, which must be able to receive email if the guest `subscribes`.
    fn read(input: &mut Input, require_email: bool, subscribes: bool) -> Self {
        let name = input.name("guest_name");
        let email = if require_email {
            Some(input.required_text("guest_email", MAX_EMAIL))
        } else {
            input.optional_text("guest_email", MAX_EMAIL)
        };
        let email = email.map(|email| email.trim().to_owned()).filter(|email| !email.is_empty());
        let mailed = email.as_deref().and_then(mailable);
        if email.as_ref().is_some_and(|email| mailed.is_none() && !is_email(email)) {
            input.fail_as("guest_email", Errors::address);
        } else if subscribes && email.is_some() && mailed.is_none() {
            input.fail_as("guest_email", Errors::ascii_address);
        }
        Self { name, email: mailed.or(email) }
    }
}

/// The thread that the comment is posted to, with the caller's state in it.
struct TargetThread {
    id: ThreadId,
    thread: Thread,
    visitor_state: VisitorThreadState,
}

/// A valid request, and the data needed to decide on it.
struct Draft {
    input: CreateInput,
    idempotency: Option<IdempotencyRequest>,
    prior: PriorResult<CommentId>,
    /// `None` for a top-level comment, and when the parent does not exist.
    parent: Option<CommentWithAncestors>,
    /// Handles in the body that belong to users.
    mentions: Vec<String>,
    /// Keyed hash of a guest's network.
    network: Option<String>,
}

/// Reads the caller's item, the thread and the request. Reads the thread even if the request is invalid, because the
/// error for a closed thread takes precedence.
async fn load(app: &App, call: &Call, id: ThreadId) -> Result<(Option<User>, (TargetThread, Result<Draft>))> {
    let owners = app.owners(call);
    let (known, draft) = tokio::join!(app.store.thread_for_visitor(&id, &owners), draft(app, call));
    let ThreadForVisitor { thread, visitor_state, user, count: _ } = known?;
    Ok((user, (TargetThread { id, thread, visitor_state }, draft)))
}

async fn draft(app: &App, call: &Call) -> Result<Draft> {
    call.comment_key()?;
    let input = CreateInput::read(app, call)?;
    if let Some(guest) = &input.guest {
        app.refuse_lookalike(call, "guest_name", &guest.name, None).await?;
    }
    let idempotency = app.idempotency(call)?;
    let parent = async {
        match input.parent {
            Some(parent) => app.store.comment_with_ancestors(parent, Reading::Eventual).await,
            None => Ok(None),
        }
    };
    let mentions = app.store.mentioned_handles(markdown::mentions(&input.body));
    let prior = app.store.prior_result(idempotency.as_ref());
    let (parent, mentions, prior) = tokio::try_join!(parent, mentions, prior)?;
    let network = input.guest.is_some().then(|| app.network(call));
    Ok(Draft { input, idempotency, prior, parent, mentions, network })
}

/// Returns the member's or guest's address for reply notifications, if the writer subscribes.
fn subscription(app: &App, call: &Call, viewer: &Viewer, input: &CreateInput) -> Option<Subscription> {
    if !input.subscribe || !app.config.features.subscriptions {
        return None;
    }
    let keys = app.mail_keys();
    let (address, guest) = match &viewer.user {
        Some(user) => (app.member_address(call, user)?, None),
        None => {
            let email = input.guest.as_ref()?.email.as_deref()?;
            let language = call.language().tag().to_owned();
            (Address { sealed: keys.seal(email), language, confirmed: false }, Some(keys.guest(email)))
        }
    };
    let network = if address.confirmed { String::new() } else { keys.network(call.network) };
    Some(Subscription { guest, address: Some(address), network })
}

async fn store(app: &App, call: &Call, viewer: &Viewer, target: &TargetThread, mut draft: Draft) -> Result<Comment> {
    if matches!(draft.prior, PriorResult::Other) {
        return Err(FieldErrors::used_key().into());
    }
    let parent = match draft.input.parent {
        Some(_) => Some(parent(app, viewer, target, draft.parent.take()).await?),
        None => None,
    };
    let judgment = judge(app, call, viewer, target, &draft.input).await?;
    let state = if judgment.waits { State::Pending } else { State::Approved };
    let (suspicious, verdicts) = (judgment.is_suspicious(), judgment.verdicts);
    let subscription = subscription(app, call, viewer, &draft.input).map(Box::new);
    let by_trust = state == State::Approved && policy::shows_by_trust(&app.config);
    let comment = new_comment(viewer, target, &draft, parent.as_ref());
    let comment = Comment { state, suspicious, by_trust, verdicts, subscription, ..comment };
    let idempotency = draft.idempotency.as_ref();
    let new = NewComment { draft: comment, parent, visitor_state: &target.visitor_state, idempotency };
    match app.store.create(&app.ids, new).await? {
        Created::Done(comment) => Ok(*comment),
        // The parent was deleted after it was read.
        Created::ParentGone => Err(policy::missing_parent().into()),
        Created::Before => match app.store.prior_result(idempotency).await? {
            PriorResult::Same(id) => created_before(app, id).await,
            _ => Err(FieldErrors::used_key().into()),
        },
    }
}

async fn judge(
    app: &App,
    call: &Call,
    viewer: &Viewer,
    target: &TargetThread,
    input: &CreateInput,
) -> Result<Judgment> {
    let guest = input.guest.as_ref();
    let url = app.config.page_of(&target.id, target.thread.known_url_or(input.page.as_ref()));
    let draft = spam_check::Draft {
        body: &input.body,
        author: match (&viewer.user, guest) {
            (Some(user), _) => &user.name,
            (None, guest) => guest.map_or("", |guest| &guest.name),
        },
        email: guest.and_then(|guest| guest.email.as_deref()),
        url: url.as_deref(),
        edit: false,
    };
    app.judge(call, viewer, draft).await
}

/// Returns the parent, or an error if the viewer may not reply to it.
async fn parent(
    app: &App,
    viewer: &Viewer,
    target: &TargetThread,
    found: Option<CommentWithAncestors>,
) -> Result<Comment> {
    let listed =
        |found: &CommentWithAncestors| policy::in_lists(&viewer.owners.comments, &found.comment, &found.ancestors);
    let found = app.store.reread_unless(found, listed).await?.ok_or_else(policy::missing_parent)?;
    policy::reply(&app.config, viewer, &target.id, &found.comment, &found.ancestors)?;
    Ok(found.comment)
}

/// Returns the current state of the comment that an earlier request with the same idempotency key created.
async fn created_before(app: &App, id: CommentId) -> Result<Comment> {
    let found = app.store.comment_with_ancestors(id, Reading::Consistent).await?.ok_or(Refusal::NotFound)?;
    policy::exists(&found.comment)?;
    Ok(found.comment)
}

fn new_comment(viewer: &Viewer, target: &TargetThread, draft: &Draft, parent: Option<&Comment>) -> Comment {
    let input = &draft.input;
    let (name, avatar) = match (&viewer.user, &input.guest) {
        (Some(user), _) => (user.name.clone(), user.avatar.clone()),
        (None, Some(guest)) => (guest.name.clone(), guest.email.as_deref().map(gravatar).unwrap_or_default()),
        (None, None) => (String::new(), Avatar::default()),
    };
    Comment {
        ancestors: parent.iter().flat_map(|parent| parent.ancestors.iter().copied().chain([parent.id])).collect(),
        user: viewer.user_id(),
        guest: viewer.user.is_none().then(|| viewer.owners.comments.clone()),
        network: draft.network.clone(),
        name,
        avatar,
        by_moderator: viewer.is_moderator(),
        body: input.body.clone(),
        mentions: draft.mentions.clone(),
        page: if parent.is_none() { input.page.clone().map(Box::new) } else { None },
        subscribed: input.subscribe,
        ..Comment::blank(target.id.clone())
    }
}
