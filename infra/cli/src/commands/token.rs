//! `cargo local token`: prints a token.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use jiff::{SignedDuration, Span, SpanRelativeTo};
use server::data_dir::DataDir;
use server::settings;
use server::token::Token;
use shared::config::Config;
use shared::domain::time::Clock;

use super::{Failure, data_dir};

/// Print a token for a signed-in user
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(super) struct Options {
    /// Id of the user
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub(super) id: String,
    /// Name of the user
    #[arg(long, allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new())]
    pub(super) name: String,
    /// Give the token the moderator role
    #[arg(long)]
    pub(super) moderator: bool,
    /// Avatar of the user
    #[arg(long, value_name = "URL")]
    picture: Option<String>,
    /// Email address, for notifications and a Gravatar
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,
    /// Lifetime, such as 30m, 1h or 7d
    #[arg(long, value_name = "TIME", default_value = "1h", allow_hyphen_values = true, value_parser = parse_lifetime)]
    pub(super) expires: SignedDuration,
    /// Directory with the signing secret
    #[arg(long, value_name = "DIR", default_value_os_t = data_dir())]
    data_dir: PathBuf,
}

impl Options {
    pub(super) fn run(self) -> Result<(), Failure> {
        let config = local_config(&self.data_dir)?;
        let Self { id, name, moderator, picture, email, expires: lifetime, data_dir: _ } = self;
        let token = Token { id, name, moderator, picture, email, lifetime };
        Ok(writeln!(io::stdout(), "{}", token.sign(&config.auth, Clock::system().now())?)?)
    }
}

/// The configuration of a service on this machine. No directory is needed if `SVC_JWT_SECRET` is set.
pub(super) fn local_config(data_dir: &Path) -> Result<Config, Failure> {
    let data_dir = (!settings::is_set("SVC_JWT_SECRET")).then(|| DataDir::used(data_dir)).transpose()?;
    Ok(settings::load(data_dir.as_ref(), None)?)
}

fn parse_lifetime(text: &str) -> Result<SignedDuration, &'static str> {
    let span: Span = text.parse().map_err(|_| "expected a time such as 30m, 1h or 7d")?;
    let lifetime = span.to_duration(SpanRelativeTo::days_are_24_hours());
    let lifetime = lifetime.map_err(|_| "expected days, hours, minutes or seconds")?;
    lifetime.is_positive().then_some(lifetime).ok_or("expected a lifetime of more than zero")
}
