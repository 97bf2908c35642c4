//! The command line of `cargo local`: words in, a command out. Nothing is done here.

use std::ffi::OsString;
use std::path::PathBuf;

use jiff::{SignedDuration, Span, SpanRelativeTo};
use lexopt::prelude::*;

use crate::bench::Bench;

pub const HELP: &str = "\
The comment service on this machine: API, table, bucket and triggers. No account, no container.

Usage: cargo local [OPTIONS]
       cargo local token --id ID --name NAME [TOKEN OPTIONS]
       cargo local check [CHECK OPTIONS]
       cargo local bench [BENCH OPTIONS]

Options:
  --port N           port on 127.0.0.1, 0 for any free one [default: 3000]
  --data-dir DIR     where data and secrets are kept [default: .local/]
  --ephemeral        keep nothing: data and secrets go with the process
  --services-only    no API: the table on port 8000 and the bucket on port 9000 (on any free
                     ones with --port 0), for functions that run elsewhere; prints the
                     environment they need
  -h, --help         this text

Token options, for a signed-in user; the token is printed:
  --id ID            the user's id
  --name NAME        the user's name
  --moderator        with the moderator role
  --picture URL      the user's avatar
  --email ADDRESS    for a Gravatar when there is no picture
  --expires TIME     such as 30m, 1h or 7d [default: 1h]
  --data-dir DIR     whose secret signs it [default: .local/]

Check options, to recount a table and say what is wrong in it (then the exit code is 1):
  --data-dir DIR     whose table [default: .local/]
  --table NAME       a deployed table instead, with the AWS variables of the environment
  --repair           mend what is wrong

Bench options, to measure this machine's answers in a table made for it; use a release build:
  --seconds N        how long each row is measured [default: 2]
  --isso PATH        compare with Isso, the program of that name from PyPI

Settings are environment variables (SVC_…); see infra/README.md.
";

#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    Help,
    Serve(Serve),
    Token {
        token: Token,
        data_dir: PathBuf,
    },
    Check {
        table: TableAt,
        repair: bool,
    },
    Bench(Bench),
    /// The server that a bench measures.
    BenchServer {
        data_dir: PathBuf,
    },
}

/// Where a table is.
#[derive(Debug, PartialEq, Eq)]
pub enum TableAt {
    DataDir(PathBuf),
    /// By its name, in AWS.
    Deployed(String),
}

#[derive(Debug, PartialEq, Eq)]
pub struct Serve {
    pub port: u16,
    /// `None` keeps nothing.
    pub data_dir: Option<PathBuf>,
    /// No API: what the functions use, and no functions.
    pub services_only: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Token {
    pub id: String,
    pub name: String,
    pub moderator: bool,
    pub picture: Option<String>,
    pub email: Option<String>,
    pub lifetime: SignedDuration,
}

/// Takes the words after the program's name.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Command, lexopt::Error> {
    let mut parser = lexopt::Parser::from_args(words);
    let mut serve = Serve { port: 3000, data_dir: Some(default_data_dir()), services_only: false };
    let mut data_dir = None;
    let mut ephemeral = false;
    while let Some(argument) = parser.next()? {
        match argument {
            Value(word) if word == "token" => return parse_token(parser),
            Value(word) if word == "check" => return parse_check(parser),
            Value(word) if word == "bench" => return parse_bench(parser),
            Long("port") => serve.port = parser.value()?.parse_with(parse_port)?,
            Long("data-dir") => data_dir = Some(parser.value()?.into()),
            Long("ephemeral") => ephemeral = true,
            Long("services-only") => serve.services_only = true,
            Short('h') | Long("help") => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    if ephemeral && data_dir.is_some() {
        return Err("--ephemeral keeps nothing, so there is no use for --data-dir".into());
    }
    if ephemeral {
        serve.data_dir = None;
    } else if data_dir.is_some() {
        serve.data_dir = data_dir;
    }
    Ok(Command::Serve(serve))
}

fn parse_token(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut id, mut name, mut picture, mut email) = (None, None, None, None);
    let mut moderator = false;
    let mut lifetime = SignedDuration::from_hours(1);
    let mut data_dir = default_data_dir();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("id") => id = Some(parser.value()?.string()?),
            Long("name") => name = Some(parser.value()?.string()?),
            Long("moderator") => moderator = true,
            Long("picture") => picture = Some(parser.value()?.string()?),
            Long("email") => email = Some(parser.value()?.string()?),
            Long("expires") => lifetime = parser.value()?.parse_with(parse_lifetime)?,
            Long("data-dir") => data_dir = parser.value()?.into(),
            Short('h') | Long("help") => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    let id = id.ok_or("a token needs --id")?;
    let name = name.ok_or("a token needs --name")?;
    Ok(Command::Token { token: Token { id, name, moderator, picture, email, lifetime }, data_dir })
}

fn parse_check(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut data_dir, mut table) = (None, None);
    let mut repair = false;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("data-dir") => data_dir = Some(parser.value()?.into()),
            Long("table") => table = Some(parser.value()?.string()?),
            Long("repair") => repair = true,
            Short('h') | Long("help") => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    let table = match (table, data_dir) {
        (Some(_), Some(_)) => return Err("--table is in AWS, so there is no use for --data-dir".into()),
        (Some(name), None) => TableAt::Deployed(name),
        (None, data_dir) => TableAt::DataDir(data_dir.unwrap_or_else(default_data_dir)),
    };
    Ok(Command::Check { table, repair })
}

fn parse_bench(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut bench = Bench { seconds: 2, isso: None };
    while let Some(argument) = parser.next()? {
        match argument {
            Long("seconds") => bench.seconds = parser.value()?.parse()?,
            Long("isso") => bench.isso = Some(parser.value()?.into()),
            Long("serve") => return Ok(Command::BenchServer { data_dir: parser.value()?.into() }),
            Short('h') | Long("help") => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Bench(bench))
}

fn default_data_dir() -> PathBuf {
    PathBuf::from(".local")
}

fn parse_port(text: &str) -> Result<u16, &'static str> {
    text.parse().map_err(|_| "--port takes a number from 0 to 65535")
}

fn parse_lifetime(text: &str) -> Result<SignedDuration, String> {
    let lifetime = text
        .parse::<Span>()
        .and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()))
        .map_err(|_| "--expires takes a time such as 30m, 1h or 7d".to_owned())?;
    if lifetime.is_positive() { Ok(lifetime) } else { Err("a token must live for a while".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(OsString::from)).map_err(|error| error.to_string())
    }

    fn serving(line: &str) -> (u16, Option<PathBuf>) {
        match parsed(line) {
            Ok(Command::Serve(serve)) => (serve.port, serve.data_dir),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_words_it_serves_on_port_3000_and_keeps_its_data() {
        assert_eq!(serving(""), (3000, Some(".local".into())));
        assert_eq!(serving("--port 0 --data-dir /tmp/x"), (0, Some("/tmp/x".into())));
        assert_eq!(serving("--ephemeral --port=8080"), (8080, None));
        let services_only = |line| matches!(parsed(line), Ok(Command::Serve(serve)) if serve.services_only);
        assert!(services_only("--services-only") && !services_only(""));
    }

    #[test]
    fn a_bench_may_compare_with_isso() {
        let bench = |seconds, isso: Option<&str>| Ok(Command::Bench(Bench { seconds, isso: isso.map(PathBuf::from) }));
        assert_eq!(parsed("bench"), bench(2, None));
        assert_eq!(parsed("bench --seconds 5 --isso bin/isso"), bench(5, Some("bin/isso")));
        assert!(parsed("bench --port 1").is_err());
    }

    #[test]
    fn a_token_names_who_it_is_for() {
        let Ok(Command::Token { token, .. }) = parsed("token --id 7 --name Ada --moderator --expires 7d") else {
            panic!()
        };
        assert_eq!((token.id.as_str(), token.name.as_str(), token.moderator), ("7", "Ada", true));
        assert_eq!(token.lifetime, SignedDuration::from_hours(7 * 24));
        let Ok(Command::Token { token, .. }) = parsed("token --id 7 --name Ada") else { panic!() };
        assert_eq!((token.moderator, token.lifetime), (false, SignedDuration::from_hours(1)));
    }

    #[test]
    fn a_check_is_of_one_table() {
        let check = |table, repair| Ok(Command::Check { table, repair });
        assert_eq!(parsed("check"), check(TableAt::DataDir(".local".into()), false));
        assert_eq!(parsed("check --data-dir x --repair"), check(TableAt::DataDir("x".into()), true));
        assert_eq!(parsed("check --table comments"), check(TableAt::Deployed("comments".to_owned()), false));
        assert!(parsed("check --table comments --data-dir x").unwrap_err().contains("--data-dir"));
    }

    #[test]
    fn help_is_given_wherever_it_is_asked_for() {
        assert_eq!(parsed("--help"), Ok(Command::Help));
        assert_eq!(parsed("token -h"), Ok(Command::Help));
    }

    #[test]
    fn what_is_wrong_with_the_words_is_told() {
        for (line, told) in [
            ("--port high", "--port"),
            ("--port 70000", "--port"),
            ("--prot 1", "--prot"),
            ("serve", "serve"),
            ("--ephemeral --data-dir x", "--data-dir"),
            ("token --name Ada", "--id"),
            ("token --id 7", "--name"),
            ("token --id 7 --name Ada --expires soon", "--expires"),
            ("token --id 7 --name Ada --expires 0s", "live"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(told), "{line}: {error}");
        }
    }
}
