//! `cargo local check`: recounts a table, says what is wrong a line each, and mends it when told to. What is wrong and
//! what would mend it is `shared::store::checking`'s.

use std::io::{self, Write};
use std::time::Duration;

use shared::error::Fault;
use shared::store::Store;
use shared::store::recount::Finding;

/// What mends one thing may bring another to light.
const ROUNDS: usize = 5;

#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error("{}", .0.chain())]
    Table(#[from] Fault),
    #[error("{0}")]
    Output(#[from] io::Error),
}

/// How to go about it.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    pub repair: bool,
    /// Others may be writing: only what is still wrong after this long is told. Zero when nobody else has the table.
    pub patience: Duration,
}

impl Check {
    /// Answers how many things are wrong in the end.
    pub async fn run(self, store: &Store, out: &mut impl Write) -> Result<usize, CheckError> {
        let mut findings = self.look(store).await?;
        for finding in &findings {
            writeln!(out, "{finding}")?;
        }
        let mut mended = 0;
        for _ in 0..ROUNDS {
            if !self.repair || findings.is_empty() {
                break;
            }
            for finding in &findings {
                mended += usize::from(store.repair(finding).await?);
            }
            findings = self.look(store).await?;
        }
        if self.repair {
            for finding in &findings {
                writeln!(out, "left: {finding}")?;
            }
            writeln!(out, "{mended} mended, {} left", findings.len())?;
        } else {
            writeln!(out, "{} found", findings.len())?;
        }
        Ok(findings.len())
    }

    async fn look(self, store: &Store) -> Result<Vec<Finding>, Fault> {
        let mut findings = store.check().await?;
        if !self.patience.is_zero() && !findings.is_empty() {
            tokio::time::sleep(self.patience).await;
            let again: Vec<String> = store.check().await?.iter().map(ToString::to_string).collect();
            findings.retain(|finding| again.contains(&finding.to_string()));
        }
        Ok(findings)
    }
}
