//! `cargo local moderate`: prints the URL of the moderation page, with a token.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use jiff::SignedDuration;
use server::token::Token;
use shared::domain::time::Clock;

use super::deployed::{Stack, sdk_config};
use super::local::parse_port;
use super::{DEFAULT_PORT, Failure, data_dir, token};

/// The lifetime of the token.
const HOURS: i64 = 12;
/// Not a number, so it can't be the id of a user on a site with numeric ids.
const DEFAULT_ID: &str = "moderator";

/// Print the address of the moderation page, with a token that lasts twelve
/// hours; the service need not be running
#[derive(Debug, Args)]
#[command(args_override_self = true, verbatim_doc_comment)]
pub(super) struct Options {
    /// Deployed stack, in the region and with the
    /// credentials from the environment
    #[arg(long, value_name = "NAME", conflicts_with_all = ["data_dir", "port"], verbatim_doc_comment)]
    pub(super) stack: Option<String>,
    /// Directory with the signing secret
    #[arg(long, value_name = "DIR", default_value_os_t = data_dir())]
    pub(super) data_dir: PathBuf,
    /// Port of the service on this machine
    #[arg(long, default_value_t = DEFAULT_PORT, allow_hyphen_values = true, value_parser = parse_port)]
    pub(super) port: u16,
    /// Id of the moderator
    #[arg(long, default_value = DEFAULT_ID, value_parser = NonEmptyStringValueParser::new())]
    pub(super) id: String,
    /// Name of the moderator
    #[arg(long, default_value = "Moderator", allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new())]
    pub(super) name: String,
}

impl Options {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let (api, auth) = match &self.stack {
            Some(name) => {
                let sdk = sdk_config().await?;
                let stack = Stack::describe(&sdk, name).await?;
                (stack.api()?, stack.auth(&sdk).await?)
            }
            None => {
                let config = token::local_config(&self.data_dir)?;
                let site = config.public_url.unwrap_or_else(|| format!("http://127.0.0.1:{}", self.port));
                (format!("{site}/{}", config.api_prefix), config.auth)
            }
        };
        let lifetime = SignedDuration::from_hours(HOURS);
        let token = Token { moderator: true, lifetime, ..Token::new(&self.id, &self.name) };
        let token = token.sign(&auth, Clock::system().now())?;
        Ok(writeln!(io::stdout(), "{api}/moderate#token={token}")?)
    }
}
