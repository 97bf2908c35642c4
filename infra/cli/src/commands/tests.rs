use std::path::Path;

use clap::CommandFactory;
use jiff::SignedDuration;

use super::*;

fn parsed(line: &str) -> Result<CommandLine, String> {
    CommandLine::try_parse_from(["local"].into_iter().chain(line.split_whitespace())).map_err(|error| error.to_string())
}

fn served(line: &str) -> local::Options {
    let CommandLine { local, command } = parsed(line).unwrap();
    assert!(command.is_none(), "{command:?}");
    local
}

fn command(line: &str) -> Command {
    parsed(line).unwrap().command.unwrap()
}

#[test]
fn the_definition_is_consistent() {
    CommandLine::command().debug_assert();
}

#[test]
fn without_arguments_the_command_serves_on_port_3000_and_keeps_its_data() {
    let (default, elsewhere, ephemeral) =
        (served(""), served("--port 0 --data-dir /tmp/x"), served("--ephemeral --port=8080"));
    assert_eq!((default.port, default.data_dir()), (3000, Some(".local".into())));
    assert_eq!((elsewhere.port, elsewhere.data_dir()), (0, Some("/tmp/x".into())));
    assert_eq!((ephemeral.port, ephemeral.data_dir()), (8080, None));
    assert!(served("--services-only").services_only && !default.services_only);
    assert!(served("--no-demo").no_demo && !default.no_demo);
    assert!(served("--sign-in").sign_in && !default.sign_in);
}

#[test]
fn serve_listens_on_loopback_and_keeps_its_data_in_var_lib_by_default() {
    let Command::Serve(default) = command("serve") else { panic!() };
    assert_eq!((default.listen.to_string().as_str(), default.trusted_proxies), ("127.0.0.1:3000", None));
    assert_eq!(default.data_dir, Path::new("/var/lib/comments"));
    let Command::Serve(open) = command("serve --listen [::]:80 --trusted-proxies 10.0.0.0/8,::1") else { panic!() };
    assert_eq!(open.listen.to_string(), "[::]:80");
    assert_eq!(open.trusted_proxies, Some("10.0.0.0/8,::1".parse().unwrap()));
}

#[test]
fn a_token_has_an_id_a_name_a_role_and_a_lifetime() {
    let Command::Token(token) = command("token --id 7 --name Ada --moderator --expires 7d") else { panic!() };
    assert_eq!((token.id.as_str(), token.name.as_str(), token.moderator), ("7", "Ada", true));
    assert_eq!(token.expires, SignedDuration::from_hours(7 * 24));
    let Command::Token(token) = command("token --id 7 --name -x") else { panic!() };
    assert_eq!((token.moderator, token.expires), (false, SignedDuration::from_hours(1)));
    assert_eq!(token.name, "-x");
}

#[test]
fn moderate_accepts_either_a_local_service_or_a_stack() {
    let moderate = |line| {
        let Command::Moderate(options) = command(line) else { panic!() };
        options
    };
    let default = moderate("moderate");
    assert_eq!((default.data_dir.as_path(), default.port, default.stack), (Path::new(".local"), 3000, None));
    assert_eq!((default.id.as_str(), default.name.as_str()), ("moderator", "Moderator"));
    assert_eq!(moderate("moderate --stack comments --id 7").stack.as_deref(), Some("comments"));
    for other in ["--port 1", "--data-dir x"] {
        assert!(parsed(&format!("moderate --stack comments {other}")).unwrap_err().contains("--stack"), "{other}");
    }
}

#[test]
fn the_last_of_repeated_options_counts() {
    assert_eq!(served("--port 1 --port 2").port, 2);
    let Command::Token(token) = command("token --id 7 --name Ada --id 8 --name -x") else { panic!() };
    assert_eq!((token.id.as_str(), token.name.as_str()), ("8", "-x"));
}

#[test]
fn check_accepts_either_a_data_directory_or_a_deployed_table() {
    let check = |line| {
        let Command::Check(options) = command(line) else { panic!() };
        options
    };
    assert_eq!(check("check").table.data_dir, Path::new(".local"));
    assert_eq!(check("check --data-dir x --repair").table.data_dir, Path::new("x"));
    assert!(check("check --repair").repair && !check("check").repair);
    assert_eq!(check("check --table comments").table.deployed.as_deref(), Some("comments"));
    assert!(parsed("check --table comments --data-dir x").unwrap_err().contains("--data-dir"));
}

#[test]
fn an_import_has_a_format_and_files() {
    let Command::Import(options) =
        command("import disqus a.xml b.xml --host a.example --host b.example --keep-query p,id")
    else {
        panic!()
    };
    assert_eq!(options.files, [Path::new("a.xml"), Path::new("b.xml")]);
    assert_eq!(options.hosts, ["a.example", "b.example"]);
    assert_eq!(options.keep_query, ["p", "id"]);
    assert!(!options.dry_run && options.rate.is_none());
    assert_eq!((options.spam, options.table.data_dir.as_path()), (import::Spam::Skip, Path::new(".local")));
}

#[test]
fn export_accepts_either_a_data_directory_or_a_deployed_table() {
    let Command::Export(options) = command("export --out x.jsonl.gz --data-dir y") else { panic!() };
    assert_eq!((options.out, options.table.data_dir), (Some("x.jsonl.gz".into()), "y".into()));
    let Command::Export(deployed) = command("export --table comments") else { panic!() };
    assert_eq!((deployed.out, deployed.table.deployed.as_deref()), (None, Some("comments")));
    assert!(parsed("export --table comments --data-dir x").unwrap_err().contains("--data-dir"));
}

const COMMANDS: &str = "serve,backup,restore,token,moderate,check,import,export,person export,person erase";

#[test]
fn help_fits_80_columns_and_shows_defaults() {
    let of_commands = COMMANDS.split(',').map(|command| format!("{command} --help"));
    for line in of_commands.chain(["--help".to_owned(), "-h".to_owned()]) {
        let help = parsed(&line).unwrap_err();
        assert!(help.contains("[default: "), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }
}

#[test]
fn help_lists_the_options_of_every_command() {
    let help = parsed("--help").unwrap_err();
    for command in COMMANDS.split(',') {
        let own = parsed(&format!("{command} --help")).unwrap_err();
        let options: Vec<&str> = own.lines().filter(|line| line.trim_start().starts_with("--")).collect();
        let section = help.split(&format!("\ncargo local {command}:\n")).nth(1).unwrap_or_else(|| panic!("{help}"));
        assert!(
            !options.is_empty() && options.iter().all(|option| section.contains(option.trim())),
            "{command}: {help}"
        );
    }
    let erase = parsed("person erase --help").unwrap_err();
    assert!(erase.contains("--email <ADDRESS>") && erase.contains("The exit code is 0"), "{erase}");
}

#[test]
fn a_usage_error_names_the_mistake_and_mentions_help() {
    for (line, named) in [
        ("--port high", "--port"),
        ("--port 70000", "--port"),
        ("--port -1", "from 0 to 65535"),
        ("moderate --port -1", "from 0 to 65535"),
        ("import isso x.db --rate -1", "a positive number"),
        ("person erase --user -7", "a user's id"),
        ("--prot 1", "--prot"),
        ("server", "server"),
        ("serve --listen 3000", "--listen"),
        ("serve --listen localhost:3000", "such as 127.0.0.1:3000"),
        ("serve --trusted-proxies caddy", "--trusted-proxies"),
        ("serve --ephemeral", "--ephemeral"),
        ("--ephemeral --data-dir x", "--data-dir"),
        ("token --name Ada", "--id"),
        ("token --id 7", "--name"),
        ("token --id 7 --name Ada --expires soon", "--expires"),
        ("token --id 7 --name Ada --expires 0s", "more than zero"),
        ("token --id 7 --name Ada --expires -1h", "more than zero"),
        ("token --id= --name Ada", "a value is required for '--id"),
        ("token --id 7 --name=", "a value is required for '--name"),
        ("import", "FORMAT"),
        ("import disqus", "FILE"),
        ("import jekyll x", "jekyll"),
        ("import disqus x --zone Mars/Olympus", "--zone"),
        ("import disqus x --type users", "--type"),
        ("import disqus x --host https://blog.example.org/", "one host"),
        ("import disqus x --spam maybe", "--spam"),
        ("import disqus x --rate 0", "--rate"),
        ("import disqus x --table t --data-dir d", "--table"),
        ("person", "erase"),
        ("person export", "--user"),
        ("person erase", "--user"),
        ("person erase --user 7 --email a@b.example", "--email"),
        ("person erase --user 007", "--user"),
        ("person erase --user ada", "--user"),
        ("person erase --email ada", "--email"),
        ("person erase --user 7 --table t --data-dir d", "--table"),
    ] {
        let error = parsed(line).unwrap_err();
        assert!(error.contains(named) && error.contains("--help"), "{line}: {error}");
    }
}
