//! Moderators' decisions about comments, pins and closed threads, and the host's description of a record.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;

use super::comments::{
    Changed, Plan, as_read, as_reported, change_queues, join_thread, leave_thread, present, state_text, take_page,
    unpin, verdicts,
};
use super::keys;
use super::log::{By, Subject};
use super::placement::{self, ReplyPlace};
use super::schema::{comment, maps, thread};
use super::transaction::{Label, Outcome, Write};
use super::{Reading, Store, number, text, yes};
use crate::domain::comment::{Comment, State};
use crate::domain::ids::{CommentId, ThreadId, UserId};
use crate::domain::log::Action;
use crate::domain::rejection::{Grounds, Rejection};
use crate::domain::report::{ReportStatus, Resolution};
use crate::domain::time::Timestamp;
use crate::domain::trust;
use crate::domain::viewer::Moderator;
use crate::error::Fault;

/// Maximum resolutions of one comment. If there are more, the oldest is dropped, and the second oldest covers its reports.
const MAX_RESOLUTIONS: usize = 20;

/// A moderator's decision about a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everyone sees the comment.
    Approve,
    /// In lists, only its writer sees the comment, with the grounds for the rejection.
    Reject(Grounds),
    /// The comment's reports so far are unfounded.
    Dismiss,
}

impl Verdict {
    /// `grounds` are used only for a rejection.
    #[must_use]
    pub fn parse(name: &str, grounds: Grounds) -> Option<Self> {
        match name {
            "approve" => Some(Self::Approve),
            "reject" => Some(Self::Reject(grounds)),
            "dismiss" => Some(Self::Dismiss),
            _ => None,
        }
    }

    /// The new status of the existing reports.
    fn resolves(&self) -> ReportStatus {
        match self {
            Self::Approve | Self::Reject(_) => ReportStatus::Reviewed,
            Self::Dismiss => ReportStatus::Dismissed,
        }
    }

    fn action(&self) -> Action {
        match self {
            Self::Approve => Action::Approve,
            Self::Reject(_) => Action::Reject,
            Self::Dismiss => Action::Dismiss,
        }
    }
}

/// The result of [`Store::decide`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    Done,
    /// The moderator saw a different text. Nothing was decided.
    Edited,
    Gone,
}

/// The host's description of the record that a thread belongs to.
#[derive(Clone, Debug, Default)]
pub struct HostRecord {
    pub author: Option<UserId>,
    pub title: Option<String>,
    pub url: Option<String>,
}

impl Store {
    /// Pins an approved top-level comment, replacing any other pin. Returns false if the comment no longer exists, isn't
    /// approved or is a placeholder.
    pub async fn pin(&self, comment: &Comment, by: By<'_>) -> Result<bool, Fault> {
        let at = by.clock.now().0;
        let pin = AttributeValue::M(
            [(maps::pin::COMMENT.to_owned(), number(comment.id.0)), (maps::pin::AT.to_owned(), number(at))]
                .into_iter()
                .collect(),
        );
        let writes = vec![
            Write::update(keys::thread(&comment.thread))
                .set(thread::PIN, pin)
                .when(format!("attribute_not_exists({0}) OR {0}.{1} <> :id", thread::PIN, maps::pin::COMMENT))
                .with(":id", number(comment.id.0))
                .label(Label::Pin),
            present(Write::check(keys::comment(comment.id), format!("attribute_not_exists({0})", comment::STATE))),
        ];
        Ok(match self.transact_logged(writes, by, Action::Pin, Subject::Comment(comment)).await? {
            Outcome::Done => true,
            // The comment is pinned already.
            Outcome::Failed(failed) => failed.is_only(Label::Pin),
        })
    }

    /// Unpins the comment. Returns false if it isn't pinned or no longer exists.
    pub async fn unpin(&self, comment: &Comment, by: By<'_>) -> Result<bool, Fault> {
        let unpin = unpin(Write::update(keys::thread(&comment.thread)), comment);
        let outcome = self.transact_logged(vec![unpin], by, Action::Unpin, Subject::Comment(comment)).await?;
        Ok(outcome == Outcome::Done)
    }

    /// Carries out a moderator's decision about a comment. `seen` is the comment's `updated_at` as the moderator saw
    /// it, exact to the second. Without it, the decision is about the text in `comment`.
    pub async fn decide(
        &self,
        comment: Comment,
        verdict: &Verdict,
        seen: Option<Timestamp>,
        by: By<'_>,
    ) -> Result<Decided, Fault> {
        let read = comment.edited_at;
        let plan = |comment: Comment| async move {
            if comment.is_placeholder {
                return Ok(Plan::Gone);
            }
            if seen.is_some_and(|seen| seen.seconds() != comment.updated_at().seconds()) {
                return Ok(Plan::Edited);
            }
            let plan = match verdict {
                Verdict::Approve => self.approve(comment.clone(), read, by).await?,
                Verdict::Reject(grounds) => self.reject(comment.clone(), by.rejection(grounds), by).await?,
                Verdict::Dismiss => Decision::by(&comment, comment.clone(), verdict, by)?.into_plan(),
            };
            let plan = self.with_trust(plan, &comment, verdict, by).await?;
            if *verdict == Verdict::Approve { self.with_page(plan, &comment).await } else { Ok(plan) }
        };
        Ok(match self.try_plans("deciding about a comment", comment, plan).await? {
            Changed::Done | Changed::Now(_) => Decided::Done,
            Changed::Edited => Decided::Edited,
            Changed::Gone => Decided::Gone,
        })
    }

    /// Adds the decision's effect on the writer's trust to the plan.
    async fn with_trust(&self, plan: Plan, comment: &Comment, verdict: &Verdict, by: By<'_>) -> Result<Plan, Fault> {
        let decided = match verdict {
            Verdict::Approve => trust::Decided::Approved,
            Verdict::Reject(_) => trust::Decided::Rejected,
            Verdict::Dismiss => return Ok(plan),
        };
        match plan {
            Plan::Together(mut writes) => {
                writes.extend(self.note_decision(comment, decided).await?);
                Ok(Plan::Together(writes))
            }
            Plan::Nothing => {
                let noted = self.note_standing(comment, decided).await?;
                let ban = match verdict {
                    Verdict::Approve => self.ban_since_decided(comment).await?,
                    _ => None,
                };
                if noted.is_none() && ban.is_none() {
                    return Ok(Plan::Nothing);
                }
                let key = keys::comment(comment.id);
                let stands = match ban {
                    Some(ban) => as_decided(Write::update(key), comment, by.ids.after(CommentId(ban), 0).0),
                    None => Write::unchanged(key),
                };
                Ok(Plan::Together(std::iter::once(as_read(stands, comment)).chain(noted).collect()))
            }
            plan => Ok(plan),
        }
    }

    /// Adds a write to an approved comment's plan that stores the title and address of the comment's page, if no page has
    /// reported them before.
    async fn with_page(&self, plan: Plan, comment: &Comment) -> Result<Plan, Fault> {
        let Some(page) = comment.page.as_deref().filter(|_| comment.is_approved()) else { return Ok(plan) };
        let as_read = || as_read(Write::unchanged(keys::comment(comment.id)), comment);
        let writes = match plan {
            Plan::Nothing => vec![as_read()],
            Plan::Together(writes) => writes,
            plan => return Ok(plan),
        };
        if self.thread(&comment.thread, Reading::Eventual).await?.lacks(page) {
            let take = take_page(Write::update(keys::thread(&comment.thread)), page);
            return Ok(Plan::Together(writes.into_iter().chain([take]).collect()));
        }
        Ok(if writes == [as_read()] { Plan::Nothing } else { Plan::Together(writes) })
    }

    /// The plan for an approval. `read` is the edit time of the text that the decision is about.
    async fn approve(&self, comment: Comment, read: Option<Timestamp>, by: By<'_>) -> Result<Plan, Fault> {
        // A text that the moderator did not see stays in review, or enters review if it was not visible before. Its verdicts are
        // kept.
        let unseen = comment.edited_at != read;
        let in_review = unseen && (comment.in_review || !comment.is_approved());
        let verdicts = if in_review { comment.verdicts.clone() } else { Vec::new() };
        let decided = Comment { state: State::Approved, in_review, verdicts, rejection: None, ..comment.clone() };
        let decision = Decision::by(&comment, decided, &Verdict::Approve, by)?;
        if comment.is_approved() { Ok(decision.into_plan()) } else { self.show(decision).await }
    }

    /// The plan for a rejection. Rejecting again on the same grounds keeps the first rejection.
    pub(super) async fn reject(&self, comment: Comment, rejection: Rejection, by: By<'_>) -> Result<Plan, Fault> {
        let verdict = Verdict::Reject(rejection.grounds.clone());
        let is_same = comment.state == State::Rejected && comment.grounds() == rejection.grounds;
        let rejection = if is_same { comment.rejection.clone() } else { Some(Box::new(rejection)) };
        let decided = Comment { state: State::Rejected, in_review: false, rejection, ..comment.clone() };
        let decision = Decision::by(&comment, decided, &verdict, by)?;
        if comment.is_approved() { self.hide(decision).await } else { Ok(decision.into_plan()) }
    }

    /// The plan that rejects an approved comment.
    async fn hide(&self, decision: Decision<'_>) -> Result<Plan, Fault> {
        let comment = decision.before;
        let Some(parent) = comment.parent() else {
            let thread = self.thread(&comment.thread, Reading::Consistent).await?;
            let (rejection, others) = decision.placed(false).into_writes();
            let mut writes = placement::demote_all(comment, rejection);
            writes.extend(others);
            writes.push(leave_thread(comment, &thread));
            writes.push(placement::gain_own(comment, false));
            return Ok(Plan::Together(writes));
        };
        let Some(parent) = self.get::<Comment>(&keys::comment(parent), Reading::Consistent).await? else {
            return Ok(Plan::Gone);
        };
        let (_, visitor_state) = self.thread_and_visitor_state(&comment.thread, &comment.visitor().into()).await?;
        let is_inline = placement::own_is_inline(&parent, &visitor_state);
        let (rejection, others) = decision.placed(is_inline).into_writes();
        let mut writes = vec![rejection];
        writes.extend(others);
        writes.push(placement::lose_to_hidden(parent.id, comment));
        writes.push(Write::put(keys::hidden_reply(parent.id, comment.id).item()));
        writes.push(placement::gain_own(comment, is_inline));
        Ok(Plan::Together(writes))
    }

    /// The plan that makes a pending or rejected comment visible to everyone.
    pub(super) async fn show(&self, decision: Decision<'_>) -> Result<Plan, Fault> {
        let comment = decision.before;
        let mut writes = vec![placement::lose_own(comment)];
        let is_inline = if let Some(parent) = comment.parent() {
            let Some(parent) = self.get::<Comment>(&keys::comment(parent), Reading::Consistent).await? else {
                return Ok(Plan::Gone);
            };
            let place = ReplyPlace::below(&parent, comment.id, self.embedded);
            writes.extend(place.gain(&parent, comment.id, self.embedded));
            writes.push(Write::delete(keys::hidden_reply(parent.id, comment.id)));
            place.is_inline
        } else {
            let join = join_thread(comment);
            // A moderator's approval also vouches for the page's title and address.
            let page = comment.page.as_deref().filter(|_| decision.entry.is_some());
            writes.push(page.map_or(join.clone(), |page| take_page(join, page)));
            false
        };
        let (approval, others) = decision.placed(is_inline).into_writes();
        writes.push(approval);
        writes.extend(others);
        Ok(Plan::Together(writes))
    }

    /// Closes or reopens a thread. Not logged if nothing changes.
    pub async fn set_closed(&self, thread: &ThreadId, closed: bool, by: By<'_>) -> Result<(), Fault> {
        let change = Write::update(keys::thread(thread))
            .set(thread::CLOSED, AttributeValue::Bool(closed))
            .when(format!("attribute_not_exists({0}) OR {0} <> :{0}", thread::CLOSED));
        let action = if closed { Action::Close } else { Action::Open };
        self.transact_logged(vec![change], by, action, Subject::Thread(thread)).await.map(drop)
    }

    /// Replaces the host's whole description of the record, but not whether its thread is closed. Not logged.
    pub async fn set_record(&self, thread: &ThreadId, record: &HostRecord, _by: &Moderator) -> Result<(), Fault> {
        let update = Write::update(keys::thread(thread))
            .assign(thread::AUTHOR, record.author.map(|author| number(author.0)))
            .assign(thread::TITLE, record.title.clone().map(text))
            .assign(thread::URL, record.url.clone().map(text));
        self.update("describing a record", update).await.map(drop)
    }
}

/// A new state of a comment, as a write of its item. A moderator's decision resolves the reports so far, and has a log entry.
pub(super) struct Decision<'a> {
    before: &'a Comment,
    after: Comment,
    write: Write,
    entry: Option<Write>,
}

impl<'a> Decision<'a> {
    pub(super) fn new(before: &'a Comment, after: Comment, write: Write) -> Self {
        Self { before, after, write, entry: None }
    }

    fn by(before: &'a Comment, after: Comment, verdict: &Verdict, by: By<'_>) -> Result<Self, Fault> {
        let after = Comment { reported: false, ..after };
        let mut write = as_reported(as_read(Write::update(keys::comment(before.id)), before), before);
        write = write.still(comment::REPORTED, before.reported.then(yes));
        if before.reported {
            // The newest report may come from an instance whose clock is ahead.
            let newest = before.newest_reports.first().map(|newest| newest.created_at).unwrap_or_default();
            let resolution = Resolution { until: by.clock.now().max(newest), status: verdict.resolves() };
            write = write
                .remove(comment::REPORTED)
                .assign(comment::RESOLUTIONS, resolutions(&with_resolution(before, resolution))?);
        }
        if before.state != after.state {
            write = write.assign(comment::STATE, state_text(after.state).map(text));
            if before.is_approved() {
                write = write.set(comment::WAS_SHOWN, yes());
            }
        }
        if before.in_review != after.in_review {
            write = write.assign(comment::IN_REVIEW, after.in_review.then(yes));
        }
        if before.verdicts != after.verdicts {
            write = write.assign(comment::VERDICTS, verdicts(&after)?);
        }
        if before.rejection != after.rejection {
            write = write
                .still(comment::REJECTION, rejection(before.rejection.as_deref())?)
                .assign(comment::REJECTION, rejection(after.rejection.as_deref())?);
        }
        // The new decision's id is higher than the previous one's, even if the clock was set back. But if the previous
        // id is too far ahead of the clock, the id follows the clock, so that the log doesn't show a time in the
        // future.
        let is_ahead = CommentId(before.decided).created_at().is_too_far_ahead(Duration::ZERO, by.clock.now());
        let id = by.ids.after(CommentId(if is_ahead { 0 } else { before.decided }), 0).0;
        if write.has_changes() {
            write = as_decided(write, before, id);
        }
        let entry = by.entry(id, verdict.action(), Subject::Comment(before))?;
        Ok(Self { entry: Some(entry), ..Self::new(before, after, write) })
    }

    /// Adds the index keys of the comment's new place.
    fn placed(mut self, is_inline: bool) -> Self {
        for (name, value) in placement::index_keys(&self.after, is_inline) {
            self.write = self.write.set(name, value);
        }
        self
    }

    /// The write of the comment's item, and the writes of the queues and the log.
    pub(super) fn into_writes(self) -> (Write, Vec<Write>) {
        let others = change_queues(self.before, &self.after).into_iter().chain(self.entry);
        (self.write, others.collect())
    }

    /// The plan for a decision that doesn't move the comment in the indexes.
    fn into_plan(self) -> Plan {
        if !self.write.has_changes() {
            return Plan::Nothing;
        }
        let (write, others) = self.into_writes();
        Plan::Together(std::iter::once(write).chain(others).collect())
    }
}

/// Records the decision on the comment, on condition that no other decision was first.
fn as_decided(write: Write, comment: &Comment, id: u64) -> Write {
    let before = Some(comment.decided).filter(|decided| *decided > 0);
    write.still(comment::DECIDED, before.map(number)).set(comment::DECIDED, number(id))
}

fn with_resolution(comment: &Comment, next: Resolution) -> Vec<Resolution> {
    let mut resolutions = comment.resolutions.clone();
    resolutions.push(next);
    if resolutions.len() > MAX_RESOLUTIONS {
        resolutions.remove(0);
    }
    resolutions
}

/// The value of the attribute `rj`; `None` leaves the attribute out.
pub fn rejection(rejection: Option<&Rejection>) -> Result<Option<AttributeValue>, Fault> {
    let stored = rejection.map(serde_dynamo::to_attribute_value).transpose();
    stored.map_err(|error| Fault::new("serializing a rejection", error))
}

/// The value of the attribute `rs`; `None` leaves the attribute out.
pub(super) fn resolutions(resolutions: &[Resolution]) -> Result<Option<AttributeValue>, Fault> {
    let stored = (!resolutions.is_empty()).then(|| serde_dynamo::to_attribute_value(resolutions)).transpose();
    stored.map_err(|error| Fault::new("serializing resolutions", error))
}
