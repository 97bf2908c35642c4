//! Leaves out data of people who were erased. Their comments count as deleted, and their reports lose the reporter.

use std::collections::{BTreeMap, BTreeSet};

use shared::domain::ids::{UserId, Visitor};

use super::Staging;
use crate::import::author::Users;
use crate::import::record::{Author, RecordState};
use crate::store::person::forgotten::Forgotten;

impl Staging {
    /// Removes the data of erased people. Call this before [`Staging::resolve`]. [`Staging::locate`] then recognizes
    /// comments that were erased from the table.
    pub fn forget(&mut self, users: &Users, forgotten: &Forgotten) {
        self.forgotten = Some(forgotten.clone());
        if forgotten.is_empty() {
            return;
        }
        let visitors = self.forget_comments(users, forgotten);
        let is_user = |id: u64| forgotten.has_user(UserId(id));
        let is_visitor =
            |visitor: &Visitor| visitors.contains(visitor) || visitor.user().is_some_and(|id| forgotten.has_user(id));
        for page in &mut self.pages {
            page.author_id = page.author_id.filter(|id| !is_user(*id));
        }
        self.export.accounts.retain(|id, _| !is_user(*id));
        for visitors in self.export.likes.values_mut() {
            visitors.retain(|visitor| !is_visitor(visitor));
        }
        for report in self.export.reports.values_mut().flat_map(BTreeMap::values_mut) {
            if is_visitor(&Visitor(report.visitor.clone())) || report.user_id.is_some_and(is_user) {
                *report = report.clone().without_reporter();
            }
        }
    }

    /// Marks comments by erased people. Returns the guests among their writers.
    fn forget_comments(&mut self, users: &Users, forgotten: &Forgotten) -> BTreeSet<Visitor> {
        let mut visitors = BTreeSet::new();
        for index in 0..self.comments.len() {
            if !self.writer(index, users).is_forgotten(forgotten) {
                continue;
            }
            let comment = &mut self.comments[index];
            (comment.writer, comment.is_forgotten) = (None, true);
            let record = &mut comment.record;
            visitors.extend(record.author.visitor.take().map(Visitor));
            (record.author, record.mentions, record.edited_at) = (Author::default(), Vec::new(), None);
            (record.state, record.held_for, record.subscribed) = (RecordState::Deleted, None, false);
        }
        visitors
    }
}
