//! `comments-server backup` and `restore`: packs a data directory into one file, and unpacks it.

mod archive;
mod door;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use flate2::read::MultiGzDecoder;
use jiff::{SignedDuration, Timestamp};
use server::data_dir::{DataDir, DataDirError};
use shared::domain::time::Clock;
use transfer::check::Check;

use self::archive::{pack, unpack};
pub(super) use self::door::Door;
use super::kept::open_table;
use super::output::Destination;
use super::table::Table;
use super::{Failure, data_dir, production_data_dir};

/// Back up all data of a service, running or not, to one file.
/// The exit code is 3 if the data or the file cannot be used
#[derive(Debug, Args)]
#[command(args_override_self = true, verbatim_doc_comment)]
pub(super) struct BackUp {
    /// File to write, compressed if it
    /// ends in .gz; - is standard output
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    pub(super) out: PathBuf,
    /// Directory of the data and the
    /// secrets
    #[arg(long, value_name = "DIR", default_value_os_t = production_data_dir(), verbatim_doc_comment)]
    pub(super) data_dir: PathBuf,
}

/// Restore a backup into a data directory. The exit code is 3 if the backup is
/// damaged, or the directory is not empty
#[derive(Debug, Args)]
#[command(args_override_self = true, verbatim_doc_comment)]
pub(super) struct Restore {
    /// Backup file; - is standard input
    pub(super) file: PathBuf,
    /// Directory to create, or an empty one
    #[arg(long, value_name = "DIR", default_value_os_t = data_dir(), verbatim_doc_comment)]
    pub(super) data_dir: PathBuf,
}

impl BackUp {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let out = Destination::new("--out", Some(&self.out), Some(&self.data_dir))?;
        let data_dir = DataDir::existing(&self.data_dir)?;
        out.write(async |mut out| {
            // This process or the service holds the lock until the archive is written.
            let (_lock, snapshot) = match data_dir.lock() {
                Ok(lock) => (Some(lock), door::snapshot(&open_table(Some(&data_dir))?, &data_dir).await?),
                Err(in_use @ DataDirError::InUse(_)) => (None, door::ask(&data_dir).await?.ok_or(in_use)?),
                Err(error) => return Err(error.into()),
            };
            pack(&data_dir, snapshot.path(), &mut out)?;
            Ok(snapshot.done().await?)
        })
        .await
    }
}

impl Restore {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let target = &self.data_dir;
        let new = target.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
        let new: Vec<&Path> = new.collect();
        let data_dir = DataDir::open(target)?;
        if !data_dir.is_unused()? {
            return Err(format!("{} is not empty; use an empty or new directory", target.display()).into());
        }
        // Held until the end, because a service that is starting may have created only its lock file so far.
        let _lock = data_dir.lock_if_present()?;
        let staging = data_dir.staging();
        let restored = self.fill(&staging).await;
        if restored.is_err() {
            fs::remove_dir_all(&staging)?;
            new.into_iter().try_for_each(fs::remove_dir)?;
        }
        let made_at = restored?;
        data_dir.adopt(&staging)?;
        writeln!(io::stdout(), "restored a backup that was made at {made_at}; repeat erasures since then")?;
        Ok(())
    }

    /// Unpacks the backup, repairs its table, and returns the time of the backup.
    async fn fill(&self, staging: &Path) -> Result<Timestamp, Failure> {
        DataDir::open(staging)?;
        let named = |error: Failure| format!("{}: {error}", self.file.display());
        let file: Box<dyn Read> = if self.file == Path::new("-") {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(&self.file).map_err(|error| named(error.into()))?)
        };
        let mut file = io::BufReader::new(file);
        let mut start = Vec::new();
        file.by_ref().take(2).read_to_end(&mut start).map_err(|error| named(error.into()))?;
        let whole = start.chain(file);
        let made_at = match start[..] {
            [] => Err("the file is empty; pass a file that backup wrote".into()),
            [0x1f, 0x8b] => unpack(MultiGzDecoder::new(whole), staging),
            _ => unpack(whole, staging),
        };
        let made_at = made_at.map_err(named)?;
        DataDir::existing(staging)?;
        let table = Table::of_data_dir(staging)?;
        Check { repair: true, patience: Duration::ZERO }.run(&table.store, &Clock::system(), &mut io::sink()).await?;
        if let Some(kept) = &table.kept {
            // Marks the last hour before the backup as unfinished, so that the first start creates any missing
            // thumbnails.
            kept.lock.begin_at((made_at - SignedDuration::from_hours(1)).into())?;
        }
        Ok(made_at)
    }
}
