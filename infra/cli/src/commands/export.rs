//! `cargo local export`: writes a table as a file that `cargo local import native` reads.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use shared::domain::ids::salt_fingerprint;
use transfer::export::export;

use super::Failure;
use super::output::Destination;
use super::table::{Table, TableOptions};

/// Export comments, likes, reports and users to a file in the native format; see
/// docs/native-format.md. The exit code is 3 if the table cannot be used
#[derive(Debug, Args)]
#[command(args_override_self = true, verbatim_doc_comment)]
pub(super) struct Options {
    /// File to write, compressed if it ends in
    /// .gz; - is standard output, the default
    #[arg(long, value_name = "FILE.jsonl[.gz]", verbatim_doc_comment)]
    pub(super) out: Option<PathBuf>,
    #[command(flatten)]
    pub(super) table: TableOptions,
}

impl Options {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let out = Destination::new("--out", self.out.as_deref(), self.table.data_dir())?;
        let comments = out.write(async |mut out| {
            let table = Table::open_to_read(&self.table).await?;
            Ok(export(&table.store, salt_fingerprint(table.salt()?), &mut out).await?)
        });
        let comments = comments.await?;
        if out.is_file() {
            writeln!(io::stdout(), "{comments} comments exported")?;
        }
        Ok(())
    }
}
