//! Parameters of the template: `CloudFormation` refuses values that would prevent the functions from starting.

use std::collections::{BTreeMap, BTreeSet};

use fancy_regex::Regex;
use serde_json::Value;
use shared::config::{Config, ConfigError};
use shared::routes::ROUTES;

use crate::deployed::{entries, referred, template};

/// Parameters that accept any text.
const FREE: [&str; 7] =
    ["GithubClientId", "GoogleClientId", "OidcClientId", "JwtAudience", "JwtIssuer", "SpamDeny", "SpamReview"];

const SECRET: &str = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:comments/jwt-AbCdEf";
/// An ARN without its suffix. Secrets Manager finds the secret, but no permission matches.
const PARTIAL_SECRET: &str = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:comments/jwt";
const ADDRESSES: [&str; 3] = ["https://example.org", "http://127.0.0.1:3000/", "https://a.example.org:8443/b/c_(d)~e"];
const NO_ADDRESSES: [&str; 12] = [
    "https://example..org",
    "https://example.org/%zz",
    "example.org",
    "ftp://example.org",
    "https://",
    "https://exa mple.org",
    "https:/example.org",
    "https://ada:pw@example.org",
    "https://example.org?a=b",
    "https://example.org/#top",
    "https://example.org:65536",
    "https://*",
];

const HTTPS: [&str; 3] = ["https://id.example.org", "https://id.example.org:8443/a/b/", "https://localhost"];
const NO_HTTPS: [&str; 6] = [
    "https://id..example.org",
    "http://id.example.org",
    "id.example.org",
    "https://",
    "https://ada:pw@id.example.org",
    "https://id.example.org?a=b",
];

/// An address whose local part has the maximum length, 64 characters.
const LONGEST: &str = "a.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@example.org";
const TOO_LONG: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@example.org";

/// Values that a parameter accepts, besides an empty one, and values that both the parameter and the setting refuse.
const SETTINGS: &[(&str, &[&str], &[&str])] = &[
    ("AkismetUrl", &ADDRESSES, &NO_ADDRESSES),
    ("ApiPrefix", &["svc/api/v1", "api", "a.b/~c_d-e"], &["a//b", "../x", "a/./b", "a b", "ä"]),
    (
        "CorsOrigins",
        &["*", "https://*", "https://example.org", "http://localhost:8080"],
        &[
            "example.org",
            "https://example.org/",
            "https://*.example.org",
            "null",
            "https://example.org:443",
            "http://example.org:80",
            "https://example.org:70000",
            "https://example..org",
        ],
    ),
    ("DefaultSort", &["newest", "oldest", "most_liked", "most_replied"], &["best", "Newest", "newest,oldest"]),
    ("GuestLikesPerIp", &["0", "50", "1000000"], &["1000001", "-1", "many", "1.5"]),
    ("GuestReportsPerIp", &["0", "5", "1000000"], &["1000001", "-1", "x"]),
    (
        "JwksUrl",
        &["https://id.example.org/.well-known/jwks.json", "https://id.example.org:8443/keys?v=1"],
        &[
            "http://id.example.org/keys",
            "id.example.org",
            "https://",
            "https://id.example.org/keys#1",
            "https://id.example.org/.well-known/openid-configuration",
        ],
    ),
    (
        "MailFrom",
        &["comments@example.org", "o'hara+a_b@mail.example.co", LONGEST],
        &[
            "comments",
            "comments@localhost",
            "Comments <comments@example.org>",
            "a..b@example.org",
            "a@-b.org",
            TOO_LONG,
        ],
    ),
    ("GithubUrl", &HTTPS, &NO_HTTPS),
    ("MailWait", &["0", "60", "999", "1000", "3600"], &["3601", "4000", "-1", "1h"]),
    (
        "MediaMaxBytes",
        &["1", "999999", "1000000", "4099999", "4193999", "4194299", "4194304"],
        &["0", "4194305", "4194400", "4195000", "4200000", "5000000", "10000000", "4MB"],
    ),
    (
        "ModerationMail",
        &["mods@example.org", "a@example.org, b@example.org", LONGEST],
        &["mods", "a@example.org;b@example.org", TOO_LONG],
    ),
    (
        "Moderators",
        &[
            "7",
            "7, 12,auth0|ada",
            "email:you@example.org",
            " email: a@example.org ,7, email:b@example.org",
            "e,em,ema,emai,email,emails,the email:you",
            "email|abc:def",
            "github:583231",
            "7, github: 1 ,google:112233, oidc:auth0|a:b c",
            "githubs,github|1",
            "Emails,EMAIL|1,User 7, 7 ,auth0|7 12",
        ],
        &[
            "email:you",
            "email:",
            "7, email: ",
            "7,email:you@localhost",
            "email:a..b@example.org",
            "email:a@example.org x",
            "github:ada",
            "7,github:",
            "github:0",
            "oidc: ",
            "google:,7",
            "7;12",
            "7 12",
            "ada, 7\t12",
            "7 email:you@example.org",
            "EMAIL:you@example.org",
            "7, Email: you@example.org",
            "GitHub:583231",
        ],
    ),
    ("OidcIssuer", &HTTPS, &NO_HTTPS),
    ("OidcName", &["Company", "Ada's \"site\" é"], &["a\u{7}b", "a\u{85}b"]),
    (
        "PageUrl",
        &["https://www.example.org/{type}/{id}", "http://127.0.0.1:3000/?{id}&{type}"],
        &[
            "http://127.0.0.1:3000/?{id}#{type}",
            "https://www.example.org/{type}",
            "https://www.example.org/{id}",
            "www.example.org/{type}/{id}",
            "https://{type}/{id}/ x",
        ],
    ),
    ("PerPage", &["1", "9", "10", "49", "50"], &["0", "51", "100", "ten"]),
    ("Profile", &["members", "blog"], &["Blog", "shop"]),
    ("PublicUrl", &ADDRESSES, &NO_ADDRESSES),
    ("ReadLimit", &["1", "300", "1000000"], &["0", "1000001", "-5", "3e2"]),
    ("RepliesPerParent", &["0", "9", "10", "19", "20"], &["21", "30", "100", "-1"]),
    ("ReportReasons", &["spam", "spam,other", "Not nice, other"], &[",", " , "]),
    ("SiteName", &["Example", "Ada's \"site\" é"], &["a\u{7}b", "a\u{85}b"]),
    (
        "SignIn",
        &["", "true", "false", "email", "github", "oidc,google,email,github"],
        &["email,email", "true,github", "GitHub", "facebook", ",", "github,email,github"],
    ),
    ("SpamDenyLinks", &["0", "50", "9999", "10000"], &["10001", "-1", "few"]),
    ("SpamReviewLinks", &["0", "10", "9999", "10000"], &["10001", "-1", "few"]),
    ("Theme", &["auto", "light", "dark"], &["purple", "Dark"]),
    (
        "Types",
        &["posts", "posts,videos", "posts, a.b_c~d-e"],
        &["a/b", ",", "posts;videos", "bücher", "posts,users", "posts,.."],
    ),
    ("UploadLimit", &["1", "10", "1000000"], &["0", "1000001", "-5"]),
    ("UsersRoutePrefix", &["users", "community/people"], &["a//b", "..", "a b"]),
    ("WriteLimit", &["1", "60", "1000000"], &["0", "1000001", "-5"]),
];

/// Like [`SETTINGS`], for parameters that no function reads or that are the ARN of a value.
const OTHERS: &[(&str, &[&str], &[&str])] = &[
    (
        "AkismetKeyArn",
        &[SECRET, "arn:aws:ssm:us-east-1:123456789012:parameter/comments/akismet"],
        &["a-key", "arn:aws:s3:::b", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:comments/akismet"],
    ),
    (
        "AlarmTopicArn",
        &["arn:aws:sns:us-east-1:123456789012:alarms"],
        &["alarms", "arn:aws:sqs:us-east-1:123456789012:q"],
    ),
    ("BudgetMail", &["owner@example.org"], &["owner", "owner@localhost", "Owner <owner@example.org>"]),
    (
        "CertificateArn",
        &["arn:aws:acm:us-east-1:123456789012:certificate/0a1b-2c"],
        &["arn:aws:acm:eu-west-1:123456789012:certificate/0a1b-2c", "0a1b-2c"],
    ),
    ("DomainName", &["comments.example.org"], &["https://comments.example.org", "localhost", "a..example.org"]),
    ("GithubClientSecretArn", &[SECRET], &["the secret of our app", PARTIAL_SECRET]),
    ("GoogleClientSecretArn", &[SECRET], &["the secret of our client", PARTIAL_SECRET]),
    ("JwtSecretArn", &[SECRET], &["the secret that signs all the tokens", PARTIAL_SECRET]),
    ("OidcClientSecretArn", &[SECRET], &["the secret of our client", PARTIAL_SECRET]),
    ("ReservedConcurrency", &["0", "2", "10", "1000"], &["", "1", "-1", "1001", "05"]),
    ("RestoreBucket", &["exports.example-org"], &["s3://exports", "Exports", "a"]),
    (
        "RestorePrefix",
        &["AWSDynamoDB/0175-ab12/data/", "daily/AWSDynamoDB/0175-ab12/data/"],
        &["AWSDynamoDB/0175-ab12", "/"],
    ),
    ("SecretKeyArns", &["arn:aws:kms:eu-west-1:123456789012:key/0a1b-2c"], &["alias/comments", "0a1b-2c"]),
    ("SmtpUrlArn", &[SECRET], &["smtps://user:password@mail.example.org", PARTIAL_SECRET]),
];

enum Accepted {
    Values(Vec<String>),
    Pattern(Regex),
}

impl Accepted {
    /// Returns `None` if any text is accepted, or if the type or a number's bounds define the values.
    fn read(name: &str, parameter: &Value) -> Option<Self> {
        if let Some(values) = parameter["AllowedValues"].as_array() {
            return Some(Self::Values(
                values.iter().map(|value| value.as_str().map_or(value.to_string(), str::to_owned)).collect(),
            ));
        }
        let pattern = parameter["AllowedPattern"].as_str()?;
        assert!(parameter["ConstraintDescription"].is_string(), "{name} does not say what its pattern is");
        Some(Self::Pattern(
            Regex::new(&format!(r"\A(?:{pattern})\z")).unwrap_or_else(|error| panic!("{name}: {error}")),
        ))
    }

    fn accepts(&self, value: &str) -> bool {
        match self {
            Self::Values(values) => values.iter().any(|accepted| accepted == value),
            Self::Pattern(pattern) => pattern.is_match(value).unwrap(),
        }
    }
}

fn accepted() -> BTreeMap<String, Accepted> {
    let template = template();
    let parameters = entries(&template["Parameters"]).iter();
    parameters.filter_map(|(name, parameter)| Some((name.clone(), Accepted::read(name, parameter)?))).collect()
}

/// Returns the setting that gets the value of each parameter.
fn settings() -> BTreeMap<String, String> {
    let template = template();
    let functions = entries(&template["Resources"]).values().map(|resource| &resource["Properties"]);
    let environments = functions
        .chain([&template["Globals"]["Function"]])
        .filter_map(|function| function["Environment"]["Variables"].as_object());
    let variables = environments.flatten().filter(|(name, _)| name.starts_with("SVC_"));
    let parameters = entries(&template["Parameters"]);
    let named =
        variables.flat_map(|(name, value)| referred(value).into_iter().map(|parameter| (parameter, name.clone())));
    named.filter(|(parameter, _)| parameters.contains_key(parameter)).collect()
}

/// Returns the configuration with this setting, and with other settings that it needs.
fn configured(setting: &str, value: &str) -> Result<Config, ConfigError> {
    Config::from_vars(|asked| match asked {
        asked if asked == setting => Some(value.to_owned()),
        "TABLE_NAME" | "SVC_JWT_AUDIENCE" => Some("comments".to_owned()),
        "SVC_JWT_SECRET" | "SVC_VISITOR_SALT" => Some("a secret of at least thirty-two bytes".to_owned()),
        "SVC_MAIL_FROM" => Some("comments@example.org".to_owned()),
        "SVC_PUBLIC_URL" => Some("https://comments.example.org".to_owned()),
        "SVC_CORS_ORIGINS" => Some("https://www.example.org".to_owned()),
        "SVC_PAGE_URL" => Some("https://www.example.org/{type}/{id}".to_owned()),
        "SVC_OIDC_ISSUER" => Some("https://id.example.org".to_owned()),
        "SVC_OIDC_NAME" => Some("Company".to_owned()),
        _ => None,
    })
}

#[test]
fn every_parameter_says_what_it_accepts() {
    let accepted = accepted();
    for (name, parameter) in entries(&template()["Parameters"]) {
        let bounded = parameter["Type"] == "Number" && parameter.get("MinValue").is_some();
        let says = accepted.contains_key(name) || bounded;
        assert_eq!(says, !FREE.contains(&name.as_str()), "{name}");
    }
}

#[test]
fn a_wrong_value_is_refused_by_the_parameter_and_by_the_service() {
    let (accepted, settings) = (accepted(), settings());
    for (name, right, wrong) in SETTINGS {
        let (parameter, setting) = (&accepted[*name], &settings[*name]);
        for value in *right {
            assert!(parameter.accepts(value), "{name} does not accept {value:?}");
        }
        for value in *wrong {
            assert!(!parameter.accepts(value), "{name} accepts {value:?}");
            assert!(configured(setting, value).is_err(), "{setting} accepts {value:?}");
        }
    }
    for (name, right, wrong) in OTHERS {
        let refused = wrong.iter().find(|value| accepted[*name].accepts(value));
        assert_eq!(refused, None, "{name} accepts it");
        let missed = right.iter().find(|value| !accepted[*name].accepts(value));
        assert_eq!(missed, None, "{name} does not accept it");
    }
}

#[test]
fn the_functions_start_with_whatever_a_parameter_accepts() {
    let samples = SETTINGS.iter().chain(OTHERS).flat_map(|(_, right, wrong)| right.iter().chain(*wrong));
    let samples: BTreeSet<&str> = samples.copied().chain(["true", "false", "yes", "True", "1", "-0", "+5"]).collect();
    let (accepted, settings) = (accepted(), settings());
    for (name, setting) in settings.iter().filter(|(name, _)| !FREE.contains(&name.as_str())) {
        let of_parameter = match &accepted[name] {
            Accepted::Values(values) => values.iter().map(String::as_str).collect(),
            Accepted::Pattern(_) => samples.clone(),
        };
        // An empty value means the service's default. The template's rules require values where they are needed.
        let given = |value: &&str| !value.is_empty() && accepted[name].accepts(value);
        let mut tried = of_parameter.into_iter().filter(given).peekable();
        assert!(tried.peek().is_some(), "{name} has no sample in SETTINGS that it accepts");
        for value in tried {
            configured(setting, value).unwrap_or_else(|error| panic!("{name} accepts {value:?}: {error}"));
        }
    }
}

#[test]
fn the_first_segment_of_a_route_cannot_be_a_type() {
    let types = &accepted()["Types"];
    let first = ROUTES.iter().filter_map(|route| route.path.split('/').next()).filter(|first| !first.starts_with('{'));
    for reserved in first {
        for value in [reserved, &format!("posts, {reserved}"), &format!(" {reserved} ,posts")] {
            assert!(!types.accepts(value), "{value}");
        }
        for value in [&format!("{reserved}-"), &format!("x.{reserved}")] {
            assert!(types.accepts(value), "{value}");
        }
    }
}

#[test]
fn a_switch_is_on_off_or_left_to_the_service() {
    let switches = settings().into_iter().filter(|(_, setting)| {
        configured(setting, "maybe").is_err_and(|error| error.to_string().ends_with("true or false"))
    });
    let switches: Vec<_> = switches.map(|(name, _)| name).collect();
    assert!(switches.len() >= 20, "{switches:?}");
    for name in switches {
        assert_eq!(
            template()["Parameters"][&name]["AllowedValues"],
            serde_json::json!(["", "true", "false"]),
            "{name}"
        );
    }
}
