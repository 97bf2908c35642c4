//! Recounts a table, prints a line for each finding, and repairs the findings on request. The rules are in
//! `store::recount`.

use std::io::{self, Write};
use std::time::Duration;

use shared::domain::time::Clock;
use shared::error::Fault;
use shared::store::Store;

use crate::store::recount::{self, Finding};

/// Maximum rounds of checks and repairs. Repairing one item may reveal another finding.
const ROUNDS: usize = 5;

#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error("{}", .0.chain())]
    Table(#[from] Fault),
    #[error("{0}")]
    Output(#[from] io::Error),
}

#[derive(Clone, Copy, Debug)]
pub struct Check {
    pub repair: bool,
    /// A finding counts only if a second check after this time repeats it, because other processes may be writing. Zero
    /// if no other process can write.
    pub patience: Duration,
}

impl Check {
    /// Returns the number of findings that remain.
    pub async fn run(self, store: &Store, clock: &Clock, out: &mut impl Write) -> Result<usize, CheckError> {
        let mut findings = self.look(store, clock).await?;
        for finding in &findings {
            writeln!(out, "{finding}")?;
        }
        let mut repaired = 0;
        for _ in 0..ROUNDS {
            if !self.repair || findings.is_empty() {
                break;
            }
            for finding in &findings {
                repaired += usize::from(recount::repair(store, finding).await?);
            }
            findings = self.look(store, clock).await?;
        }
        if self.repair {
            for finding in &findings {
                writeln!(out, "left: {finding}")?;
            }
            writeln!(out, "{repaired} repaired, {} left", findings.len())?;
        } else {
            writeln!(out, "{} found", findings.len())?;
        }
        Ok(findings.len())
    }

    async fn look(self, store: &Store, clock: &Clock) -> Result<Vec<Finding>, Fault> {
        let mut findings = recount::check(store, clock.now()).await?;
        if !self.patience.is_zero() && !findings.is_empty() {
            tokio::time::sleep(self.patience).await;
            let again: Vec<String> =
                recount::check(store, clock.now()).await?.iter().map(ToString::to_string).collect();
            findings.retain(|finding| again.contains(&finding.to_string()));
        }
        Ok(findings)
    }
}
