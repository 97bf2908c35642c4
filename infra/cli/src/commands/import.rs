//! `cargo local import`: imports comments from another system.

use std::env;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use server::data_dir::{DataDir, DataDirError};
use server::settings;
use shared::config::{Config, is_type};
use shared::domain::ids::salt_fingerprint;
use shared::domain::origin;
use shared::domain::person::PersonHashes;
use shared::domain::time::Clock;
use transfer::import::staging::Staging;
use transfer::import::write::{self, Importer, WriteLimits};
use transfer::import::{Format, Import, Map, NO_TYPE, Reading, Report, ThreadKeys, Users, check_files};
use transfer::store::person::forgotten::{self, Forgotten};
use url::Url;

use super::output::{Destination, json};
use super::table::{Table, TableOptions};
use super::{Failure, Misuse, check, lease};

const ERASED_UNDER_OTHER_SALT: &str = "people were erased from this table under another salt; set SVC_VISITOR_SALT to the \
                                       service's value, so that their comments don't come back";
const ERASED_MEANWHILE: &str =
    "a person was erased from the table while the source was being read; run the command again";
const OTHER_SALT: &str = "note: the file was exported under another SVC_VISITOR_SALT, so guests won't be recognized as the \
                          owners of their comments, likes and reports";
/// The exit code if records were refused, or the source is incomplete.
const INCOMPLETE: u8 = 1;
/// The default write units per second for a deployed table.
const RATE: u32 = 1_000;
/// Minimum time between two updates of the progress line on a terminal.
const STEP: Duration = Duration::from_millis(200);
/// Minimum time between two progress lines if the output isn't a terminal.
const LINE: Duration = Duration::from_secs(30);

/// Import comments from another system; see docs/moving.md. Run the same command
/// again to finish an interrupted import: no comment is added twice. The exit
/// code is 1 if records were refused or are missing, 3 if the source or the
/// table cannot be used
#[derive(Debug, Args)]
#[command(args_override_self = true, verbatim_doc_comment)]
pub(super) struct Options {
    #[arg(value_name = "FORMAT", value_parser = format_parser(), hide_possible_values = true, help = format_names())]
    pub(super) format: Format,
    /// Files (plain, gzip or zip); - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,
    /// Print the report without writing anything
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Maps pages to threads, one per line: a key, or a
    /// prefix and *, then white space and type/id
    #[arg(long, value_name = "FILE", value_parser = parse_map, verbatim_doc_comment)]
    pub(super) map: Option<FileOf<Map>>,
    /// Maps writers to users, one per line: an id in the
    /// source or an address, then white space and a user id
    #[arg(long, value_name = "FILE", value_parser = parse_users, verbatim_doc_comment)]
    pub(super) users: Option<FileOf<Users>>,
    /// Type of the threads; by default the first of
    /// `SVC_TYPES`
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type, verbatim_doc_comment)]
    pub(super) kind: Option<String>,
    /// Time zone of times without one
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = parse_zone)]
    pub(super) zone: TimeZone,
    /// Name of the site, if the files lack it; without it,
    /// ids of two sites would clash
    #[arg(long, value_name = "NAME", value_parser = parse_site, verbatim_doc_comment)]
    pub(super) site: Option<String>,
    /// Host of the site; threads on other hosts are refused
    #[arg(long = "host", value_name = "HOST", value_parser = parse_host)]
    pub(super) hosts: Vec<String>,
    /// Query parameters that identify pages, such as p,id
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = parse_parameter, verbatim_doc_comment)]
    pub(super) keep_query: Vec<String>,
    /// Skip spam, trash and pingbacks, or keep them as
    /// rejected comments
    #[arg(long, value_name = "skip|keep", default_value = "skip", hide_possible_values = true, verbatim_doc_comment)]
    pub(super) spam: Spam,
    /// Write units per second; 1000 by default for a
    /// deployed table
    #[arg(long, value_name = "UNITS", allow_hyphen_values = true, value_parser = parse_rate, verbatim_doc_comment)]
    pub(super) rate: Option<u32>,
    /// Also write the report to this file, as JSON; with -,
    /// JSON goes to standard output, the text to the error
    /// output
    #[arg(long, value_name = "FILE.json", verbatim_doc_comment)]
    pub(super) report: Option<PathBuf>,
    #[command(flatten)]
    pub(super) table: TableOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Spam {
    Skip,
    Keep,
}

#[derive(Clone, Debug)]
pub(super) struct FileOf<T> {
    path: PathBuf,
    content: T,
}

impl<T> FileOf<T> {
    fn parse(path: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        Ok(Self { path: path.into(), content: parse(&text)? })
    }
}

impl Options {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        let report = self.reported().await?;
        Ok(if report.is_complete() { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) })
    }

    /// Imports and prints the report. Also writes it as JSON to the file that `--report` names. If that's standard
    /// output, the text goes to the error output.
    async fn reported(&self) -> Result<Report, Failure> {
        let out = Destination::new("--report", self.report.as_deref(), self.table.data_dir())?;
        let out = out.unlike(self.sources())?;
        if self.files.iter().filter(|file| is_standard_input(file)).count() > 1 {
            return Err(Misuse("standard input can be read only once; pass a single -".to_owned()).into());
        }
        // Fails for a missing file before a data directory is created.
        check_files(&self.files)?;
        let work = async || self.import().await;
        if self.report.is_none() {
            return out.report(work, |report| Ok(report.to_string())).await;
        }
        let report = out.report(work, json).await?;
        if out.is_file() {
            write!(io::stdout(), "{report}")?;
        } else {
            eprint!("{report}");
        }
        Ok(report)
    }

    /// The files that the import reads, without standard input.
    fn sources(&self) -> impl Iterator<Item = &Path> {
        let files = self.files.iter().map(PathBuf::as_path).filter(|file| !is_standard_input(file));
        files
            .chain(self.map.as_ref().map(|map| map.path.as_path()))
            .chain(self.users.as_ref().map(|users| users.path.as_path()))
    }

    async fn import(&self) -> Result<Report, Failure> {
        let config = settings::load(None, None)?;
        let users = self.users.clone().map(|users| users.content).unwrap_or_default();
        // A data directory that this import creates is removed again if the source can't be read.
        let new = self.table.data_dir().filter(|dir| !dir.exists());
        let table = self.open_table().await?;
        let table = table.as_ref();
        let hashes = PersonHashes::new(table.and_then(|table| table.salt().ok()).unwrap_or(&config.visitor_salt));
        let forgotten = forgotten(table, &hashes).await?;
        let import = self.plan(&config, users.clone(), forgotten.clone());
        let mut progress = Progress::new();
        let temp_dir = table.map_or_else(env::temp_dir, |table| table.temp_dir.clone());
        let staging = import.read(&temp_dir, |read| progress.read(read));
        let mut staging = staging.inspect_err(|_| drop(new.map(fs::remove_dir_all)))?;
        let prefix = staging.prefix(self.format);
        let other_salt = self.compare_salts(&staging, table)?;
        match table.filter(|_| !self.dry_run) {
            Some(table) => {
                let mut importer = Importer {
                    staging: &mut staging,
                    store: &table.store,
                    users: &users,
                    prefix: &prefix,
                    clock: Clock::system(),
                    table: self.write_limits(),
                    other_salt: other_salt.clone(),
                };
                let work = async {
                    if self::forgotten(Some(table), &hashes).await? != forgotten {
                        return Err(ERASED_MEANWHILE.into());
                    }
                    Ok::<_, Failure>(importer.run(&mut |step| progress.write(step)).await?)
                };
                let units = lease(&table.store, self.table.is_deployed()).hold(work).await?;
                progress.written(units);
            }
            None => {
                let store = table.map(|table| &table.store);
                staging.locate(store, &prefix).await.map_err(|fault| fault.chain())?;
                if let Some(store) = store {
                    staging.check_table(store).await?;
                }
            }
        }
        progress.end();
        if other_salt.is_some() {
            eprintln!("{OTHER_SALT}");
        }
        print_notes(&staging, &import.keys.map, &config.types);
        Ok(staging.report())
    }

    /// Opens or creates the table to import into. `None` for a dry run without a table.
    async fn open_table(&self) -> Result<Option<Table>, Failure> {
        let has_none = |dir| matches!(DataDir::existing(dir), Err(DataDirError::NoTable(_)));
        if self.dry_run && self.table.data_dir().is_some_and(has_none) {
            return Ok(None);
        }
        Table::open_or_create(&self.table).await.map(Some)
    }

    /// The fingerprint of the export's salt, if it differs from this service's.
    fn compare_salts(&self, staging: &Staging, table: Option<&Table>) -> Result<Option<String>, Failure> {
        if !staging.is_export() {
            return Ok(None);
        }
        let salt = match table {
            Some(table) => Some(table.salt()?.clone()),
            None if self.table.data_dir.join("visitor-salt").exists() => {
                settings::visitor_salt(Some(&DataDir::open(&self.table.data_dir)?))?
            }
            None => settings::visitor_salt(None)?,
        };
        let own = salt.as_ref().map(salt_fingerprint);
        Ok(staging.other_salt(own.as_deref())?.map(str::to_owned))
    }

    /// A data directory needs no recheck, because nothing else uses its table.
    fn write_limits(&self) -> WriteLimits {
        let deployed = self.table.is_deployed();
        let recheck = if deployed { check::PATIENCE } else { Duration::ZERO };
        WriteLimits { rate: self.rate.or(deployed.then_some(RATE)), recheck }
    }

    fn plan(&self, config: &Config, users: Users, forgotten: Option<Forgotten>) -> Import {
        let first = || config.types.first().cloned().unwrap_or_default();
        Import {
            format: self.format,
            files: self.files.clone(),
            keys: ThreadKeys {
                map: self.map.clone().map(|map| map.content).unwrap_or_default(),
                kind: self.kind.clone().unwrap_or_else(first),
                hosts: self.hosts.clone(),
                keep_query: self.keep_query.clone(),
            },
            zone: self.zone.clone(),
            keep_spam: self.spam == Spam::Keep,
            users,
            site: self.site.clone(),
            clock: Clock::system(),
            forgotten,
        }
    }
}

fn is_standard_input(file: &Path) -> bool {
    file == Path::new("-")
}

/// Hashes of people who were erased from the table. `None` if there is no table. Fails if anyone was erased under
/// another salt.
async fn forgotten(table: Option<&Table>, hashes: &PersonHashes) -> Result<Option<Forgotten>, Failure> {
    let Some(table) = table else { return Ok(None) };
    let forgotten = forgotten::forgotten(&table.store, hashes.clone()).await.map_err(|fault| fault.chain())?;
    forgotten.map(Some).ok_or_else(|| ERASED_UNDER_OTHER_SALT.into())
}

/// Prints notes about possible mistakes, even if nothing was refused.
fn print_notes(staging: &Staging, map: &Map, types: &[String]) {
    for file in &staging.silent {
        eprintln!("note: {file} has no comments");
    }
    let mut all = staging.types();
    all.extend(map.types().map(str::to_owned));
    for kind in all.iter().filter(|kind| !types.contains(kind)) {
        eprintln!("note: SVC_TYPES has no {kind}; add it to show those comments");
    }
}

/// Prints the progress: rewrites a single line on a terminal, or else prints a line now and then.
struct Progress {
    is_terminal: bool,
    began: Instant,
    /// The time when the first comments had been written.
    writing: Option<Instant>,
    done: u64,
    shown: Instant,
}

impl Progress {
    fn new() -> Self {
        let now = Instant::now();
        Self { is_terminal: io::stderr().is_terminal(), began: now, writing: None, done: 0, shown: now }
    }

    fn read(&mut self, reading: Reading) {
        let began = self.began;
        self.show(|| of_reading(reading, began.elapsed()));
    }

    fn write(&mut self, step: write::Progress<'_>) {
        match step {
            write::Progress::Settling(thread) => {
                self.end();
                eprintln!("{thread}: another import is unfinished; repairing the table first");
            }
            write::Progress::Written { done, total } => {
                let began = *self.writing.get_or_insert_with(Instant::now);
                self.done = done;
                self.show(|| of_writing(done, total, began.elapsed()));
            }
        }
    }

    fn written(&self, units: f64) {
        self.end();
        if let (true, Some(start)) = (self.is_terminal, self.writing) {
            let seconds = start.elapsed().as_secs_f64();
            eprintln!("{} comments written in {seconds:.1} seconds, with {units:.0} write units", self.done);
        }
    }

    fn show(&mut self, text: impl FnOnce() -> String) {
        let pause = if self.is_terminal { STEP } else { LINE };
        if self.shown.elapsed() < pause {
            return;
        }
        self.shown = Instant::now();
        if self.is_terminal {
            eprint!("\r\x1b[K{}", text());
        } else {
            eprintln!("{}", text());
        }
    }

    fn end(&self) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }
}

fn of_reading(Reading { comments, bytes, total }: Reading, took: Duration) -> String {
    if bytes == 0 || total == 0 {
        return format!("{comments} comments read");
    }
    let bytes = bytes.min(total);
    let percent = u128::from(bytes) * 100 / u128::from(total);
    format!("{comments} comments read, {percent}% of the source, {} left", left(took, bytes, total))
}

fn of_writing(done: u64, total: u64, took: Duration) -> String {
    let rate = done / took.as_secs().max(1);
    format!("{done} of {total} comments written, {rate} a second, {} left", left(took, done, total))
}

/// The estimated remaining time at the rate so far.
fn left(took: Duration, done: u64, total: u64) -> String {
    let rest = u128::from(total.saturating_sub(done));
    match took.as_millis() * rest / u128::from(done.max(1)) / 1000 {
        seconds @ 0..120 => format!("{seconds} seconds"),
        seconds @ 120..7200 => format!("{} minutes", seconds / 60),
        seconds => format!("{} hours", seconds / 3600),
    }
}

/// The names of all formats, wrapped for the help.
fn format_names() -> String {
    let names: Vec<&str> = Format::all().map(Format::name).collect();
    names.chunks(6).map(|line| line.join(", ")).collect::<Vec<_>>().join(",\n")
}

fn format_parser() -> impl TypedValueParser<Value = Format> {
    let names = PossibleValuesParser::new(Format::all().map(Format::name));
    names.try_map(|name| Format::named(&name).ok_or("expected a format"))
}

fn parse_map(path: &str) -> Result<FileOf<Map>, String> {
    FileOf::parse(path, Map::parse)
}

fn parse_type(kind: &str) -> Result<String, &'static str> {
    is_type(kind).then(|| kind.to_owned()).ok_or(NO_TYPE)
}

fn parse_users(path: &str) -> Result<FileOf<Users>, String> {
    FileOf::parse(path, Users::parse)
}

fn parse_rate(rate: &str) -> Result<u32, &'static str> {
    rate.parse().ok().filter(|rate| *rate > 0).ok_or("expected a positive number")
}

fn parse_site(name: &str) -> Result<String, &'static str> {
    let is_name = !name.trim().is_empty() && name.len() <= 200 && !name.chars().any(char::is_control);
    is_name.then(|| name.to_owned()).ok_or("expected 1 to 200 bytes without control characters")
}

fn parse_host(host: &str) -> Result<String, &'static str> {
    let url = Url::parse(&format!("https://{host}/")).ok();
    let is_whole = !host.contains(|c: char| c.is_whitespace() || "/\\?#@,*".contains(c)) && !host.ends_with([':', '.']);
    let is_host = is_whole && url.and_then(|url| url.host_str().map(origin::is_host)).unwrap_or_default();
    is_host.then(|| host.to_owned()).ok_or("expected one host, such as blog.example.org; repeat --host for others")
}

/// Parses the name of a query parameter. The name is empty after a trailing comma.
fn parse_parameter(name: &str) -> Result<String, &'static str> {
    let name = name.trim();
    let is_name = !name.contains(|c: char| c.is_whitespace() || "?&=;#".contains(c));
    is_name.then(|| name.to_owned()).ok_or("expected only names, such as p,id")
}

fn parse_zone(name: &str) -> Result<TimeZone, &'static str> {
    TimeZone::get(name).map_err(|_| "expected an IANA name such as Europe/Berlin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_a_name_and_perhaps_a_port() {
        for good in ["blog.example", "blog.example:8080", "bücher.example", "[::1]", "[::1]:3000"] {
            assert_eq!(parse_host(good).as_deref(), Ok(good));
        }
        for bad in [
            "",
            "a.example.",
            ".a.example",
            "a.example:",
            "a.example:99999",
            "a..example",
            "::1",
            "[::1",
            "a.example:+443",
            "https://a.example",
            "*.a.example",
        ] {
            assert!(parse_host(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_import_reports_its_progress_and_the_time_left() {
        let reading = |bytes, total| Reading { comments: 7, bytes, total };
        let after = Duration::from_secs;
        assert_eq!(of_reading(reading(25, 100), after(10)), "7 comments read, 25% of the source, 30 seconds left");
        assert_eq!(of_reading(reading(101, 100), after(10)), "7 comments read, 100% of the source, 0 seconds left");
        for unknown in [reading(0, 100), reading(25, 0)] {
            assert_eq!(of_reading(unknown, after(10)), "7 comments read");
        }
        assert_eq!(of_writing(500, 2_000, after(10)), "500 of 2000 comments written, 50 a second, 30 seconds left");
        assert_eq!(of_writing(1, 101, after(1)), "1 of 101 comments written, 1 a second, 100 seconds left");
        assert_eq!(of_writing(1, 121, after(1)), "1 of 121 comments written, 1 a second, 2 minutes left");
        assert_eq!(of_writing(100, 1_000, after(1_000)), "100 of 1000 comments written, 0 a second, 2 hours left");
        assert_eq!(of_writing(0, 5, Duration::ZERO), "0 of 5 comments written, 0 a second, 0 seconds left");
    }
}
