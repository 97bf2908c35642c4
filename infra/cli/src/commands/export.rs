//! `cargo local export`: writes a table as a file that `cargo local import native` reads.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use shared::domain::ids::salt_fingerprint;
use transfer::export::export;

use super::output::Destination;
use super::table::{self, Table};
use super::{Failure, data_dir};

/// Export comments, likes, reports and users to a file in the native format; see
/// docs/native-format.md. The exit code is 3 if the table cannot be used
#[derive(Debug, Args)]
#[command(args_override_self = true, verbatim_doc_comment)]
pub(super) struct Options {
    /// File to write, compressed if it ends in
    /// .gz; - is standard output, the default
    #[arg(long, value_name = "FILE.jsonl[.gz]", verbatim_doc_comment)]
    pub(super) out: Option<PathBuf>,
    /// Directory of the table
    #[arg(long, value_name = "DIR", default_value_os_t = data_dir())]
    pub(super) data_dir: PathBuf,
    /// Deployed table to export instead, with
    /// the credentials from the environment
    #[arg(long, value_name = "NAME", conflicts_with = "data_dir", verbatim_doc_comment)]
    pub(super) table: Option<String>,
}

impl Options {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let data_dir = table::data_dir_of(&self.data_dir, self.table.as_deref());
        let out = Destination::new("--out", self.out.as_deref(), data_dir)?;
        let comments = out.write(async |mut out| {
            let table = Table::open_to_read(&self.data_dir, self.table.as_deref()).await?;
            Ok(export(&table.store, salt_fingerprint(table.salt()?), &mut out).await?)
        });
        let comments = comments.await?;
        if out.is_file() {
            writeln!(io::stdout(), "{comments} comments exported")?;
        }
        Ok(())
    }
}
