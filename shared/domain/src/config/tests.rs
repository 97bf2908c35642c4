use super::mail::MAX_DIGESTS;
use super::*;
use crate::ids::UserId;
use crate::sign_in::{Account, account_of};
use crate::user::{Claims, Identity};

fn with(name: &'static str, value: &'static str) -> Result<Config, ConfigError> {
    with_all(&[(name, value)])
}

pub(super) fn with_all(settings: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::from_vars(|asked| match (asked, settings.iter().find(|(name, _)| *name == asked)) {
        (_, Some((_, value))) => Some((*value).to_owned()),
        ("TABLE_NAME", None) => Some("comments".to_owned()),
        ("SVC_JWT_SECRET" | "SVC_VISITOR_SALT", None) => Some("a secret of at least thirty-two bytes".to_owned()),
        _ => None,
    })
}

#[test]
fn settings_have_their_documented_defaults() {
    let config = with("", "").unwrap();
    assert_eq!(config.api_prefix, "svc/api/v1");
    assert_eq!(config.types, ["posts"]);
    assert_eq!((config.lists.per_page, config.lists.replies_per_parent), (10, 3));
    assert!(config.features.sorting && !config.features.realtime && !config.guests.allowed);
    assert_eq!((config.limits.read, config.limits.write, config.limits.upload), (300, 60, 10));
    assert_eq!((config.spam.rules.review_links, config.spam.rules.deny_links), (10, 50));
    assert_eq!(config.report_reasons, ["spam", "inappropriate", "offensive", "other"]);
}

#[test]
fn a_profile_gives_defaults_to_variables_that_are_not_set() {
    let defaults = |settings: &[(&str, &str)]| {
        let config = with_all(settings).unwrap();
        let guests = config.guests;
        let of_guests = (guests.allowed, guests.likes, guests.require_email, guests.show_gravatar);
        (of_guests, config.require_approval)
    };
    let (nobody, new) = (RequireApproval::Never, RequireApproval::OfNewWriters);
    let (members, blog) = (((false, false, true, true), nobody), ((true, true, false, false), new));
    for (settings, expected) in [
        (&[][..], members),
        (&[("SVC_PROFILE", "members")], members),
        (&[("SVC_PROFILE", "")], members),
        (&[("SVC_PROFILE", " blog ")], blog),
        (&[("SVC_PROFILE", "blog"), ("SVC_ALLOW_GUESTS", "false")], ((false, true, false, false), new)),
        (
            &[("SVC_PROFILE", "blog"), ("SVC_GUEST_REQUIRE_EMAIL", "true"), ("SVC_GUEST_LIKES", " ")],
            ((true, true, true, false), new),
        ),
        (&[("SVC_PROFILE", "blog"), ("SVC_REQUIRE_APPROVAL", "false")], ((true, true, false, false), nobody)),
    ] {
        assert_eq!(defaults(settings), expected, "{settings:?}");
    }
    let error = with("SVC_PROFILE", "shop").unwrap_err().to_string();
    assert_eq!(error, r#"SVC_PROFILE="shop": expected members or blog"#);
}

#[test]
fn the_digest_of_a_blog_has_all_comments_unless_it_says_otherwise() {
    let has_all =
        |settings: &[(&str, &str)]| with_all(&[&MAIL[..], settings].concat()).unwrap().mail.unwrap().digest_has_all;
    assert!(!has_all(&[]) && has_all(&[("SVC_MODERATION_MAIL_FOR", "all")]));
    assert!(has_all(&[("SVC_PROFILE", "blog")]));
    assert!(!has_all(&[("SVC_PROFILE", "blog"), ("SVC_MODERATION_MAIL_FOR", "waiting")]));
}

#[test]
fn approval_is_required_of_no_one_everyone_or_new_writers() {
    for (value, expected) in [
        ("", RequireApproval::Never),
        ("false", RequireApproval::Never),
        ("TRUE", RequireApproval::Always),
        ("New", RequireApproval::OfNewWriters),
    ] {
        assert_eq!(with("SVC_REQUIRE_APPROVAL", value).unwrap().require_approval, expected, "{value}");
    }
    let error = with("SVC_REQUIRE_APPROVAL", "old").unwrap_err().to_string();
    assert_eq!(error, r#"SVC_REQUIRE_APPROVAL="old": expected true, false or new"#);
}

#[test]
fn empty_and_repeated_entries_of_a_list_do_not_count() {
    let config = with_all(&[
        ("SVC_TYPES", "posts,, pages ,posts,"),
        ("SVC_REPORT_REASONS", ",spam, spam,other"),
        ("SVC_MODERATORS", "7,,ada, 7"),
        ("SVC_SPAM_DENY", "casino,，casino"),
        ("SVC_SPAM_REVIEW", " , crypto، crypto"),
        ("SVC_CORS_ORIGINS", "https://a.example,,https://A.example,"),
    ]);
    let config = config.unwrap();
    assert_eq!(
        (config.types, config.report_reasons),
        (vec!["posts".to_owned(), "pages".to_owned()], vec!["spam".to_owned(), "other".to_owned()])
    );
    assert!(config.auth.moderators.len() == 2 && config.cors_origins.contains("https://a.example"));
    assert_eq!(
        (config.spam.rules.deny, config.spam.rules.review),
        (vec!["casino".to_owned()], vec!["crypto".to_owned()])
    );
    let mail =
        with_all(&[&MAIL[..], &[("SVC_MODERATION_MAIL", "ada@example.org,,bob@example.org,Ada@Example.org")]].concat());
    assert_eq!(mail.unwrap().mail.unwrap().moderators, ["ada@example.org", "bob@example.org"]);
}

#[test]
fn an_empty_value_is_the_default() {
    assert_eq!(with("SVC_PER_PAGE", " ").unwrap().lists.per_page, 10);
}

#[test]
fn an_error_names_the_variable_its_value_and_the_values_that_it_accepts() {
    let error = with("SVC_PER_PAGE", "51").unwrap_err().to_string();
    assert_eq!(error, r#"SVC_PER_PAGE="51": expected a whole number from 1 to 50"#);
    let error = with("SVC_PINS", "maybe").unwrap_err().to_string();
    assert_eq!(error, r#"SVC_PINS="maybe": expected true or false"#);
    for (name, value) in [
        ("SVC_CLOSE_AFTER_DAYS", "1.5"),
        ("SVC_TYPES", "posts videos"),
        ("SVC_REPORT_REASONS", "\u{200b}"),
        ("SVC_REPORT_REASONS", "spam,\u{202e}rehto"),
        ("SVC_MODERATORS", "ada, 7\temail:you@example.org"),
        ("SVC_MODERATORS", "7, GitHub:583231"),
        ("SVC_MODERATION_MAIL", "ada@example.org bob@example.org"),
        ("SVC_CORS_ORIGINS", "https://a.example https://b.example"),
        ("SVC_THEME", "purple"),
        ("SVC_API_PREFIX", "/"),
        ("SVC_JWKS_URL", "ftp://example.org/keys"),
        ("SVC_JWKS_URL", "https://id.example.org/keys"),
        ("SVC_MEDIA_MAX_BYTES", "-1"),
        ("SVC_MEDIA_MAX_BYTES", "5MB"),
    ] {
        let error = with(name, value).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name}={value:?}: expected ")) && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn the_public_url_may_be_the_base_of_the_routes() {
    let base = |url: &str, prefix: &str| {
        with_all(&[("SVC_PUBLIC_URL", url), ("SVC_API_PREFIX", prefix)]).unwrap().public_url.unwrap()
    };
    for (url, prefix, expected) in [
        ("http://127.0.0.1:3000/svc/api/v1", "", "http://127.0.0.1:3000"),
        ("https://api.example.org/svc/api/v1/", "", "https://api.example.org"),
        ("https://example.org/talk/svc/api/v1", "", "https://example.org/talk"),
        ("https://api.example.org/c", "/c/", "https://api.example.org"),
        ("https://api.example.org/", "c", "https://api.example.org"),
        ("https://example.org/talk/", "", "https://example.org/talk"),
        // Only whole path segments at the end are removed.
        ("https://api.example.org/xsvc/api/v1", "", "https://api.example.org/xsvc/api/v1"),
        ("https://api.example.org/svc/api/v1/x", "", "https://api.example.org/svc/api/v1/x"),
        ("https://svc/api/v1", "", "https://svc/api/v1"),
        ("https://c", "c", "https://c"),
    ] {
        assert_eq!(base(url, prefix), expected, "{url} {prefix}");
    }
    for (url, prefix) in [
        ("https://api.example.org/svc/api/v1/svc/api/v1", ""),
        ("http://127.0.0.1:3000/talk/svc/api/v1/svc/api/v1/", ""),
        ("https://example.org/c/c", "c"),
    ] {
        let error = with_all(&[("SVC_PUBLIC_URL", url), ("SVC_API_PREFIX", prefix)]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("SVC_PUBLIC_URL={url:?}: expected ")), "{error}");
    }
    let mail = [&MAIL[..], &[("SVC_PUBLIC_URL", "https://api.example.org/svc/api/v1")]].concat();
    let mail: Vec<_> = mail.into_iter().rev().collect();
    assert_eq!(with_all(&mail).unwrap().mail.unwrap().public_url, "https://api.example.org");
}

#[test]
fn an_address_that_cannot_be_right_stops_the_start() {
    const BASES: [&str; 3] = ["SVC_PUBLIC_URL", "SVC_AKISMET_URL", "MEDIA_BASE_URL"];
    const PAGE: &str = "https://www.example.org/{type}/{id}";
    let wrong = |name: &str, value: &str| {
        let error = with_all(&[(name, value), ("SVC_JWT_ISSUER", "x")]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name}={value:?}: expected ")), "{error}");
    };
    for name in ["SVC_PUBLIC_URL", "SVC_AKISMET_URL", "MEDIA_BASE_URL", "SVC_JWKS_URL"] {
        for value in [
            "example.org",
            "//example.org",
            "ftp://example.org",
            "https://",
            "https://:3000",
            "https://*",
            "https://example.org:99999",
            "https://example.org:",
            "https://api..example.org",
            "https://.example.org",
            "https://10.0.0.256",
            "https://example.org/%zz",
            "https://ada:pw@example.org",
            "https://example.org/#top",
            "https://example.org, https://example.com",
        ] {
            wrong(name, value);
        }
    }
    for name in BASES {
        for value in ["https://example.org?a=b", "https://example.org/?"] {
            wrong(name, value);
        }
    }
    for value in [
        "https://www.example.org/{type}",
        "https://{type}.example.org/{id}",
        "https://{type}/{id}",
        "https://www.example.org/{type}/{ID}",
        "https://www.example.org/{type}/{id}/{slug}",
        "https://www.example.org/#/{type}/{id}",
        "https://ada:pw@www.example.org/{type}/{id}",
        "www.example.org/{type}/{id}",
    ] {
        wrong("SVC_PAGE_URL", value);
    }
    for value in [PAGE, "http://127.0.0.1:3000/?{type}={id}", "http://[::1]:3000?{id}&{type}"] {
        assert!(with("SVC_PAGE_URL", value).is_ok(), "{value}");
    }
}

#[test]
fn a_value_that_is_not_utf_8_stops_the_start() {
    let broken = String::from_utf8_lossy(b"caf\xe9, casino").into_owned();
    let error = with_all(&[("SVC_SPAM_DENY", &broken)]).unwrap_err().to_string();
    assert_eq!(error, "SVC_SPAM_DENY=\"caf\u{FFFD}, casino\": expected text in UTF-8");
    let error = with_all(&[("SVC_AKISMET_KEY", &broken)]).unwrap_err().to_string();
    assert_eq!(error, "SVC_AKISMET_KEY: expected text in UTF-8");
}

#[test]
fn the_first_segment_of_a_route_cannot_be_a_type() {
    for reserved in reserved_types() {
        let error = with("SVC_TYPES", reserved).unwrap_err().to_string();
        let accepted = "none of comments, counts, docs, embed, embed.js, mail, markdown, me, media, moderate, \
                        moderation, moderation.js, openapi.json, public, sign_in, ui, users";
        assert!(error.ends_with(accepted), "{error}");
    }
    assert_eq!(with("SVC_TYPES", "posts, type,openapi").unwrap().types, ["posts", "type", "openapi"]);
}

#[test]
fn secrets_are_required_and_never_shown() {
    let error = with("SVC_JWT_SECRET", "").unwrap_err().to_string();
    assert!(error.contains("SVC_JWKS_URL"), "{error}");
    assert!(with("SVC_VISITOR_SALT", "").is_err());
    let hush = "hush, which is thirty-two bytes.";
    assert!(!format!("{:?}", with("SVC_JWT_SECRET", hush).unwrap()).contains("hush"));
}

#[test]
fn a_function_without_callers_starts_without_their_secrets() {
    let with = |needs, named: &'static str| {
        let asked = [("TABLE_NAME", "comments"), (named, "a salt of 18 bytes")];
        let value = |name: &str| asked.iter().find(|(asked, _)| *asked == name).map(|(_, value)| (*value).to_owned());
        Config::from_vars_with(needs, value)
    };
    assert!(with(Needs::Callers, "SVC_VISITOR_SALT").is_err());
    assert!(with(Needs::Salt, "SVC_VISITOR_SALT").is_ok() && with(Needs::Salt, "").is_err());
    assert!(with(Needs::Nothing, "").is_ok_and(|config| config.visitor_salt.expose().is_empty()));
}

#[test]
fn a_public_key_or_a_secret_of_fewer_than_32_bytes_stops_the_start() {
    for short in ["x", "thirty-one bytes and not one mo"] {
        let error = with("SVC_JWT_SECRET", short).unwrap_err().to_string();
        assert_eq!(error, "SVC_JWT_SECRET: expected a secret of at least 32 bytes");
    }
    for key in [
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrB\n",
        "\u{feff}-----BEGIN CERTIFICATE-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrB\n",
        "\"-----BEGIN PUBLIC KEY-----\\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrB\"",
        r#"{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
        r#"'{"keys": [{"kty": "RSA", "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmb", "e": "AQAB"}]}'"#,
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBm/RAlphM3+hUG6wWfcO5bIUIaqMLa2yw",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQCh+JwMkS1obS0cszqxpMjPckS2",
        "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTY",
        "AAAAC3NzaC1lZDI1NTE5AAAAIBm/RAlphM3+hUG6wWfcO5bIUIaqMLa2yw",
        // PEM in base64, then PKCS #1 RSA keys in base64 and base64url.
        "LS0tLS1CRUdJTiBQVUJMSUMgS0VZLS0tLS0KTUNvd0JRWURLMlZ3QXlFQUdi",
        "MIGJAoGBAKH4nAyRLWhtLRyzOrGkyM9yRLaStLH4wmfpZEJlMg5THAoP",
        "MIIBCgKCAQEAoficDJEtaG0tHLM6saTIz3JEtpK0sfjCZ-lkQmUyDlMcCg_7",
        // DER in base64: Ed25519, P-256, P-521, RSA with 2048 bits, and the start of a certificate.
        "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=",
        "\u{feff}'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE7jTLtCQsivBmHlcD7Lu0\nD7FBTue2zNZc7FXkzHb4Il0+7tfBlzBgUyS+wIxhvLBX'",
        "MIGbMBAGByqGSM49AgEGBSuBBAAjA4GGAAQBvAjDryH88Eb4bGooCg4Rpp2m",
        "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAoficDJEtaG0tHLM6",
        "MIIDBzCCAe+gAwIBAgIJIhSx2XqTFCZtMA0GCSqGSIb3DQEBCwUAMCExHzAd",
    ] {
        let error = with("SVC_JWT_SECRET", key).expect_err(key).to_string();
        assert!(error.contains("SVC_JWKS_URL") && !error.contains(key), "{error}");
    }
    for secret in [
        "thirty-two bytes, and not a more",
        "é é é é é é é é é é é",
        "correct horse battery staple: ssh-rsa",
        "MIIq7vTqT3mYw0a8ZrXc5Jk2LdNf9GhB",
        "hJtXIZ2uSN5kbQfbtTNWbpdmhkV8FJG+Onbc6mxCcYg=",
        "MDzS7v3nQ2bYw1aZrXc5Jk2LdNf9GhBtXIZ2uSN5kbQfbtTNWbpdmhkV8FJGOnbc6mxCcYgAAAAAAAAAAAAAAA==",
        "9b74c9897bac770ffc029102a200c5de9b74c9897bac770ffc029102a200c5de",
        r#"{"kty": "oct", "k": "hJtXIZ2uSN5kbQfbtTNWbpdmhkV8FJG"}"#,
    ] {
        assert!(with("SVC_JWT_SECRET", secret).is_ok(), "{secret}");
    }
}

#[test]
fn a_salt_of_fewer_than_16_bytes_stops_the_start() {
    for short in ["a", "fifteen bytes !"] {
        let error = with("SVC_VISITOR_SALT", short).unwrap_err().to_string();
        assert_eq!(error, "SVC_VISITOR_SALT: expected a secret of at least 16 bytes");
    }
    assert!(with("SVC_VISITOR_SALT", "sixteen bytes !!").is_ok());
}

#[test]
fn a_key_set_is_fetched_over_https_or_from_this_machine() {
    let jwks = |url| with_all(&[("SVC_JWKS_URL", url), ("SVC_JWT_AUDIENCE", "comments")]);
    for url in [
        "https://id.example.org/keys",
        "http://localhost:8080/keys",
        "http://127.0.0.1:9/keys",
        "http://127.1.2.3/keys",
        "http://[::1]:9/keys",
    ] {
        assert!(jwks(url).is_ok(), "{url}");
    }
    for url in ["http://id.example.org/keys", "http://localhost.example.org/", "http://10.0.0.1/", "http://[::2]/"] {
        let error = jwks(url).unwrap_err().to_string();
        assert_eq!(error, format!("SVC_JWKS_URL={url:?}: expected an https address without credentials or a fragment"));
    }
    let error = jwks("https://id.example.org/.well-known/openid-configuration").unwrap_err().to_string();
    assert!(error.starts_with("SVC_JWKS_URL=") && error.contains("jwks_uri"), "{error}");
}

#[test]
fn a_key_set_needs_an_issuer_or_an_audience() {
    let url = ("SVC_JWKS_URL", "https://id.example.org/keys");
    let error = with_all(&[url]).unwrap_err().to_string();
    assert!(error.starts_with("SVC_JWKS_URL=") && error.contains("SVC_JWT_ISSUER or SVC_JWT_AUDIENCE"), "{error}");
    for beside in ["SVC_JWT_ISSUER", "SVC_JWT_AUDIENCE"] {
        assert!(with_all(&[url, (beside, "x")]).is_ok());
    }
}

const MAIL: [(&str, &str); 3] = [
    ("SVC_MAIL_FROM", "comments@example.org"),
    ("SVC_PUBLIC_URL", "https://api.example.org/"),
    ("SVC_PAGE_URL", "https://www.example.org/{type}/{id}"),
];

#[test]
fn email_requires_a_sender_a_public_url_and_page_addresses() {
    let mail = with_all(&MAIL).unwrap().mail.unwrap();
    assert_eq!(
        (mail.site_name.as_str(), mail.wait, mail.moderators.len()),
        ("www.example.org", Duration::from_mins(1), 0)
    );
    let post = ThreadId::new("posts", "a:1").unwrap();
    let config = with_all(&MAIL).unwrap();
    let page = |said: Option<&str>| config.page_of(&post, said);
    assert_eq!(page(None).as_deref(), Some("https://www.example.org/posts/a:1"));
    assert_eq!(page(Some("https://example.org/x")).as_deref(), Some("https://example.org/x"));
    assert_eq!(with_all(&[]).unwrap().page_of(&post, None), None);
    for missing in ["SVC_PUBLIC_URL", "SVC_PAGE_URL"] {
        let rest: Vec<_> = MAIL.into_iter().filter(|(name, _)| *name != missing).collect();
        let error = with_all(&rest).unwrap_err().to_string();
        assert!(error.starts_with(missing) && error.contains("SVC_MAIL_FROM is set"), "{error}");
    }
}

#[test]
fn subscriptions_need_a_sender_in_functions_that_send_emails() {
    assert!(with("SVC_SUBSCRIPTIONS", "true").unwrap().mail.is_none());
    let error = with_all(&[("SVC_SUBSCRIPTIONS", "true"), ("SVC_MAIL_FROM", "")]).unwrap_err().to_string();
    assert!(error.starts_with("SVC_MAIL_FROM=") && error.contains("SVC_SUBSCRIPTIONS"), "{error}");
    assert!(with("SVC_MAIL_FROM", "").unwrap().mail.is_none());
}

#[test]
fn a_digest_needs_a_sender_in_functions_that_send_emails() {
    assert!(with("SVC_MODERATION_MAIL", "mods@example.org").unwrap().mail.is_none());
    let digest = [("SVC_MODERATION_MAIL", "mods@example.org"), ("SVC_MAIL_FROM", "")];
    let error = with_all(&digest).unwrap_err().to_string();
    assert_eq!(error, "SVC_MAIL_FROM=\"\": expected an email address, because SVC_MODERATION_MAIL is set");
}

#[test]
fn a_secret_that_is_kept_in_aws_is_named() {
    let arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:jwt-AbCdEf";
    for name in ["SVC_JWT_SECRET", "SVC_VISITOR_SALT", "SVC_AKISMET_KEY", "SVC_EDGE_SECRET"] {
        assert_eq!(with_all(&[(name, arn)]).unwrap().secret_kept_in_aws(), Some(name));
    }
    assert_eq!(with("", "").unwrap().secret_kept_in_aws(), None);
}

#[test]
fn invalid_settings_of_email_stop_the_start() {
    let too_many: Vec<_> = (0..=MAX_DIGESTS).map(|number| format!("mods{number}@example.org")).collect();
    let too_many = too_many.join(",");
    for (name, value) in [
        ("SVC_MAIL_FROM", "Comments <comments@example.org>"),
        ("SVC_PAGE_URL", "https://www.example.org/{type}"),
        ("SVC_PAGE_URL", "ftp://www.example.org/{type}/{id}"),
        ("SVC_MODERATION_MAIL", "mods@example.org,nobody"),
        ("SVC_MODERATION_MAIL", &too_many),
        ("SVC_MODERATION_MAIL_FOR", "pending"),
        ("SVC_SITE_NAME", "a\u{7}b"),
        ("SVC_SITE_NAME", "gro.elpmaxe\u{202e}"),
        ("SVC_SITE_NAME", "Example\u{2028}Blog"),
        ("SVC_SITE_NAME", "\u{200b}"),
        ("SVC_MAIL_WAIT", "3601"),
        ("SVC_MAIL_WAIT", "1h"),
        ("SVC_SMTP_URL", "https://user:hush@example.org"),
        ("SVC_SMTP_URL", "smtp://user:hush#hush@example.org"),
        ("SVC_SMTP_URL", "smtp://user:hush@example.org?tls=opportunistic"),
        ("SVC_SMTP_URL", "smtp://user:hush@example.org?%74ls=none"),
        ("SVC_SMTP_URL", "smtp://user:hush@[::1]:1025"),
        ("SVC_SMTP_URL", "smtp://user:hush@example.org:99999"),
        ("SVC_SMTP_URL", "smtp://user:hush@example.org:0"),
        ("SVC_SMTP_URL", "smtp://hush@example.org"),
        ("SVC_SMTP_URL", "smtp://user:hush%ff@example.org"),
        ("SVC_SMTP_URL", "smtp://user%00:hush@example.org"),
        ("SVC_SMTP_URL", "smtp://user:hush@mail..example.org"),
        ("SVC_SMTP_URL", "smtp://user:hush@"),
    ] {
        let settings: Vec<_> = MAIL.into_iter().filter(|(other, _)| *other != name).chain([(name, value)]).collect();
        for error in [with_all(&settings), with_all(&[(name, value)])].map(|config| config.unwrap_err().to_string()) {
            let named = if name == "SVC_SMTP_URL" { name.to_owned() } else { format!("{name}={value:?}") };
            assert!(error.starts_with(&format!("{named}: expected ")) && !error.contains("hush"), "{error}");
        }
    }
    for url in [
        "smtp://mail.example.org:587?tls=required",
        "smtps://user:pass%40word@mail.example.org",
        "arn:aws:ssm:eu-west-1:1:parameter/smtp",
    ] {
        assert!(with_all(&[&MAIL[..], &[("SVC_SMTP_URL", url)]].concat()).is_ok(), "{url}");
    }
}

#[test]
fn an_edge_secret_says_that_there_is_an_edge() {
    assert!(with("SVC_EDGE_SECRET", "edge").unwrap().at_edge && !with("", "").unwrap().at_edge);
}

#[test]
fn moderators_are_ids_below_two_to_the_53_and_subs() {
    let config = with("SVC_MODERATORS", "7, ada,9007199254740991,9007199254740992").unwrap();
    let sub = |text: &str| Moderator::Sub(text.to_owned());
    let id = |id| Moderator::Id(UserId(id));
    assert_eq!(config.auth.moderators, [id(7), sub("ada"), id(9_007_199_254_740_991), sub("9007199254740992")]);
    let names = |sub: &str| config.names_moderator(&identity(&config, sub, None));
    assert!(names("7") && names("ada") && !names("8") && !names("Ada"));
}

pub(super) fn identity(config: &Config, sub: &str, account: Option<Account>) -> Identity {
    Identity::new(
        Claims { sub: sub.to_owned(), account: account.map(Box::new), ..Claims::default() },
        &config.visitor_salt,
    )
}

#[test]
fn an_email_address_in_the_settings_makes_only_its_account_a_moderator() {
    let config = with("SVC_MODERATORS", "email: Ada@Example.org").unwrap();
    let account = |address| {
        let (id, subject) = account_of(&config.visitor_salt, address);
        Account { id, subject, epoch: 1 }
    };
    let names = |sub: &str, account| config.names_moderator(&identity(&config, sub, account));
    assert!(names("x", Some(account("ada@example.org"))));
    assert!(!names("x", Some(account("ada+x@example.org"))) && !names("x", Some(account("eve@example.org"))));
    for sub in ["ada@example.org", "email:ada@example.org", "email: Ada@Example.org"] {
        assert!(!names(sub, None), "{sub}");
    }
    assert!(config.named_moderators(&[]).any(|id| id == account("ada@example.org").id));
    let error = with("SVC_MODERATORS", "email:ada").unwrap_err().to_string();
    assert!(error.starts_with("SVC_MODERATORS=") && error.contains("after email:"), "{error}");
}

const SIGN_IN: [(&str, &str); 5] = [
    ("SVC_SIGN_IN", "true"),
    ("SVC_SIGN_IN_SEED", "a seed of at least thirty-two bytes"),
    ("SVC_MAIL_FROM", "comments@example.org"),
    ("SVC_PUBLIC_URL", "https://api.example.org"),
    ("SVC_CORS_ORIGINS", "https://www.example.org"),
];

#[test]
fn sign_in_requires_a_sender_a_public_url_listed_origins_and_a_seed() {
    let config = with_all(&SIGN_IN).unwrap();
    assert!(config.sign_in.is_some() && config.mail.is_some() && config.page_url.is_none());
    assert_eq!(config.site_name.as_deref(), Some("api.example.org"));
    for (missing, value) in [
        ("SVC_MAIL_FROM", ""),
        ("SVC_PUBLIC_URL", ""),
        ("SVC_CORS_ORIGINS", ""),
        ("SVC_CORS_ORIGINS", "*"),
        ("SVC_CORS_ORIGINS", "https://*"),
        ("SVC_CORS_ORIGINS", "https://www.example.org, http://*"),
        ("SVC_SIGN_IN_SEED", ""),
    ] {
        let others = SIGN_IN.into_iter().filter(|(name, _)| *name != missing);
        let error = with_all(&others.chain([(missing, value)]).collect::<Vec<_>>()).unwrap_err().to_string();
        assert!(error.starts_with(missing) && error.contains("because"), "{error}");
    }
    let seed = [("SVC_SIGN_IN_SEED", "a short seed")];
    for others in [&SIGN_IN[..], &[]] {
        let error = with_all(&[&seed[..], others].concat()).unwrap_err().to_string();
        assert_eq!(error, "SVC_SIGN_IN_SEED: expected a secret of at least 32 bytes");
    }
    assert!(with("SVC_SIGN_IN_SEED", "").unwrap().sign_in.is_none());
}

#[test]
fn functions_without_a_seed_and_a_sender_sign_nothing_and_send_no_emails() {
    let others = SIGN_IN.into_iter().filter(|(name, _)| !["SVC_SIGN_IN_SEED", "SVC_MAIL_FROM"].contains(name));
    let config = with_all(&others.collect::<Vec<_>>()).unwrap();
    assert!(config.sign_in.unwrap().seed.is_none() && config.mail.is_none());
}
