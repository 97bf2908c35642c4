//! `cargo local person`: exports or erases a person's data.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use md5::{Digest, Md5};
use media::bucket;
use serde_json::Value;
use server::data_dir::DataDir;
use server::outbox;
use server::queue;
use server::settings;
use shared::config;
use shared::domain::ids::{UserId, hex, salt_fingerprint};
use shared::domain::person::Who;
use shared::domain::secret::Secret;
use shared::domain::sign_in::providers::ProviderAccount;
use shared::domain::time::Clock;
use transfer::person::erase::{Eraser, Machine, Mail, Receipt, Retained};
use transfer::person::export::export;

use super::check;
use super::deployed::sdk_config;
use super::kept::open_bucket;
use super::output::{Destination, json};
use super::table::{Kept, Table, TableOptions};
use super::{Failure, Misuse, lease, not_set};

/// The exit code if items that should have been erased still name the person.
const LEFT: u8 = 1;

/// Export or erase one person's data
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Export a person's profile, comments, likes and reports in the native format;
    /// see docs/native-format.md. The exit code is 3 if the table cannot be used
    #[command(verbatim_doc_comment)]
    Export(Options),
    /// Erase a person and print a receipt as JSON; see docs/moving.md. Run the same
    /// command again to finish an interrupted erasure. The exit code is 0 even if
    /// the person is unknown, 1 if something still names the person, 3 if the table
    /// cannot be used
    #[command(verbatim_doc_comment)]
    Erase(Options),
}

#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    who: WhoOptions,
    /// File to write; - is standard output, the default
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    table: TableOptions,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct WhoOptions {
    /// Id of a user, as the API shows it, or an account
    /// elsewhere, such as github:583231
    #[arg(long, value_name = "ID", allow_hyphen_values = true, value_parser = parse_user, verbatim_doc_comment)]
    user: Vec<NamedUser>,
    /// Address that a guest gave, here or in the system that
    /// the comments come from, or that signs in by code
    #[arg(long, value_name = "ADDRESS", value_parser = parse_email, verbatim_doc_comment)]
    email: Vec<String>,
}

impl WhoOptions {
    /// Refuses several people, because a command handles only one.
    fn check(&self) -> Result<(), Misuse> {
        if self.user.len() + self.email.len() > 1 {
            return Err(Misuse("specify one person: pass either --user or --email, once".to_owned()));
        }
        Ok(())
    }

    /// The person that the options name. One of them is always set, because clap requires it.
    fn who(&self, salt: &Secret) -> Result<Who, Failure> {
        let by_address = |email: &String| Who::address(email, hex(&Md5::digest(email.as_bytes())), salt);
        match (self.user.first(), self.email.first()) {
            (Some(NamedUser::Id(id)), _) => Ok(Who::User(*id)),
            (Some(NamedUser::Elsewhere(account)), _) => {
                let known = config::issuers(config::environment)?.account(salt, account);
                let (id, _) = known.ok_or_else(|| not_set("SVC_OIDC_ISSUER"))?;
                Ok(Who::User(id))
            }
            (None, Some(email)) => Ok(by_address(email)),
            (None, None) => Err("expected --user or --email".into()),
        }
    }
}

impl Command {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        let (Self::Export(options) | Self::Erase(options)) = &self;
        options.who.check()?;
        match self {
            Self::Export(options) => options.export().await,
            Self::Erase(options) => options.erase().await,
        }
    }

    pub(super) fn is_for_deployed_table(&self) -> bool {
        let (Self::Export(options) | Self::Erase(options)) = self;
        options.table.is_deployed()
    }
}

impl Options {
    async fn export(self) -> Result<ExitCode, Failure> {
        let out = self.destination()?;
        let records = out.write(async |mut out| {
            let table = Table::open_to_read(&self.table).await?;
            Ok(export(&table.store, self.who.who(table.salt()?)?, salt_fingerprint(table.salt()?), &mut out).await?)
        });
        let records = records.await?;
        if out.is_file() {
            writeln!(io::stdout(), "{records} records exported")?;
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn erase(self) -> Result<ExitCode, Failure> {
        let out = self.destination()?;
        let mut cleaned = Ok(());
        let work = async || {
            let (receipt, result) = self.receipt().await?;
            cleaned = result;
            Ok(receipt)
        };
        let reported = out.report(work, json).await;
        if let Err(error) = cleaned {
            let reported = reported.err().map(|error| format!("{error}\n")).unwrap_or_default();
            let again = "erased data may remain in unused parts of the data directory; run the same command again";
            return Err(format!("{reported}{error}; {again}").into());
        }
        let receipt = reported?;
        if let Some(table) = &self.table.deployed {
            eprintln!(
                "If the stack has an edge cache (EdgeCache=true), erased data may stay readable there for five more \
                 minutes. This command empties it at once:\n"
            );
            eprintln!("    {}", emptying_the_edge(table));
        }
        Ok(if receipt.left == 0 { ExitCode::SUCCESS } else { ExitCode::from(LEFT) })
    }

    fn destination(&self) -> Result<Destination<'_>, Misuse> {
        Destination::new("--out", self.out.as_deref(), self.table.data_dir())
    }

    /// Erases the person. Then cleans up a data directory; the receipt is valid even if this cleanup fails.
    async fn receipt(&self) -> Result<(Receipt, Result<(), Failure>), Failure> {
        let table = Table::open(&self.table).await?;
        let salt = table.salt()?;
        let objects = Objects::open(&self.table).await?;
        let eraser = Eraser {
            store: &table.store,
            bucket: bucket::Bucket::new(&objects.client, &objects.bucket),
            salt,
            clock: Clock::system(),
            lease: lease(&table.store, self.table.is_deployed()),
            patience: if self.table.is_deployed() { check::PATIENCE } else { Duration::ZERO },
            machine: table.kept.as_ref().map(|kept| kept as &dyn Machine),
        };
        let who = self.who.who(salt)?;
        // If this stops halfway, the next start repairs the table.
        if let Some(kept) = &table.kept {
            kept.lock.begin()?;
        }
        let mut receipt = eraser.erase(who).await?;
        if let Some(kept) = table.kept.as_ref().filter(|kept| !kept.is_unfinished) {
            kept.lock.end()?;
        }
        let why = "those made before still contain the erased data; delete them, or erase again after restoring one";
        receipt.stays.push(Retained { what: "backups".to_owned(), why: why.to_owned() });
        Ok((receipt, table.kept.as_ref().map_or(Ok(()), Kept::clean_up)))
    }
}

impl Machine for Kept {
    fn remove_mails(&self, picks: &dyn Fn(&Mail<'_>) -> bool) -> io::Result<u64> {
        outbox::remove(&self.data_dir.file("mail"), |mail| {
            picks(&Mail { to: &mail.to, texts: [&mail.subject, &mail.text, &mail.html] })
        })
    }

    fn remove_messages(&self, picks: &dyn Fn(&str) -> bool) -> io::Result<u64> {
        queue::remove(&self.data_dir.file("queue"), picks)
    }

    fn amend_changes(&self, amend: &mut dyn FnMut(Value) -> Option<Value>) -> io::Result<u64> {
        self.engine.amend_records(amend).map_err(io::Error::other)
    }

    fn is_unfinished(&self) -> bool {
        self.is_unfinished
    }
}

/// A shell command that invalidates the edge cache of the table's stack, and does nothing if the stack has no edge.
/// `describe-stack-resources` returns at most a hundred resources, so it's used only for the name of the stack.
fn emptying_the_edge(table: &str) -> String {
    format!(
        "for edge in $(aws cloudformation list-stack-resources --stack-name \"$(aws cloudformation describe-stack-resources \
         --physical-resource-id {table} --query 'StackResources[0].StackName' --output text)\" \
         --query \"StackResourceSummaries[?LogicalResourceId=='Edge'].PhysicalResourceId\" --output text); do \
         aws cloudfront create-invalidation --paths '/*' --distribution-id \"$edge\"; done"
    )
}

/// The bucket that belongs to a table.
struct Objects {
    client: aws_sdk_s3::Client,
    bucket: String,
}

impl Objects {
    async fn open(table: &TableOptions) -> Result<Self, Failure> {
        if table.is_deployed() {
            if !settings::is_set("MEDIA_BUCKET") {
                return Err(not_set("MEDIA_BUCKET").into());
            }
            let client = bucket::client(&sdk_config().await?);
            return Ok(Self { client, bucket: settings::load(None, None)?.media_bucket });
        }
        let data_dir = DataDir::open(&table.data_dir)?;
        let bucket = settings::load(Some(&data_dir), None)?.media_bucket;
        // A directory that no service has used has no objects, and opening the bucket would create their folder. If
        // this runs as root, the folder would then belong to root.
        let objects = Some(&data_dir).filter(|data_dir| data_dir.file("objects").exists());
        Ok(Self { client: open_bucket(objects, &bucket)?.client(), bucket })
    }
}

#[derive(Clone, Debug)]
enum NamedUser {
    Id(UserId),
    Elsewhere(ProviderAccount),
}

fn parse_user(text: &str) -> Result<NamedUser, &'static str> {
    let elsewhere = || text.parse().map(NamedUser::Elsewhere);
    let user = text.parse().map(NamedUser::Id).or_else(|()| elsewhere());
    user.map_err(|_| "expected a user's id, such as 7, or an account such as github:583231")
}

/// Parses one email address into the form that is hashed. Accepts addresses that the service would refuse, because
/// imports may contain them.
fn parse_email(text: &str) -> Result<String, &'static str> {
    let email = text.trim().to_lowercase();
    let (name, host) = email.rsplit_once('@').unwrap_or_default();
    let is_one = !name.contains('@') && !email.contains(|c: char| c.is_whitespace() || ",;<>".contains(c));
    (is_one && !name.is_empty() && !host.is_empty())
        .then_some(email)
        .ok_or("expected one address, such as ada@example.org")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_specified_by_id_or_by_provider_account() {
        let salt = Secret::from("x".repeat(32));
        let id = |text: &str| {
            let who = WhoOptions { user: vec![parse_user(text).unwrap()], email: Vec::new() };
            let Who::User(id) = who.who(&salt).unwrap() else { panic!("{text}") };
            id
        };
        assert_eq!(id("7"), UserId(7));
        assert_eq!(id("github:7"), UserId::hashed(&salt, "svc-pro:sign-in:https://github.com", "7").0);
        assert_eq!(id("google:7"), UserId::hashed(&salt, "svc-pro:sign-in:https://accounts.google.com", "7").0);
        for bad in ["", "ada", "github:", "github:ada", "github:0", "gitlab:7"] {
            assert!(parse_user(bad).is_err(), "{bad}");
        }
    }
}
