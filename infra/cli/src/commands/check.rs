//! `cargo local check`: checks a table.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use shared::domain::time::Clock;
use transfer::check::Check;

use super::table::{Table, TableOptions};
use super::{FAILED, Failure};

/// The delay before findings or remains in a deployed table are checked again. Most requests that were already being
/// handled have finished by then.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Check a table and print its problems. The exit code is 1 if any remain,
/// 3 if the table cannot be used
#[derive(Debug, Args)]
#[command(args_override_self = true, verbatim_doc_comment)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) table: TableOptions,
    /// Repair the problems
    #[arg(long)]
    pub(super) repair: bool,
}

impl Options {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        let table =
            if self.repair { Table::open(&self.table).await? } else { Table::open_to_read(&self.table).await? };
        let patience = if self.table.is_deployed() { PATIENCE } else { Duration::ZERO };
        let check = Check { repair: self.repair, patience };
        let left = check.run(&table.store, &Clock::system(), &mut io::stdout()).await?;
        if let Some(kept) = table.kept.as_ref().filter(|_| self.repair) {
            kept.clean_up()?;
        }
        if left == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        eprintln!(
            "error: {}",
            match &table.kept {
                Some(kept) if kept.is_unfinished => {
                    "the last process did not finish its work; start and stop the service, then check again"
                }
                _ if self.repair => "the table is not consistent; the lines that begin with \"left\" list what remains",
                _ if table.copy.is_some() => "the table is not consistent; make the directory writable to use --repair",
                _ => "the table is not consistent; pass --repair to repair what can be repaired",
            }
        );
        Ok(ExitCode::from(FAILED))
    }
}
