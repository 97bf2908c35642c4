//! Checks of the deployed template that linters don't make.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use server::template::{DEPLOYED, Template, document};
use shared::config::{Config, Needs};
use shared::http::cors;
use shared::routes::ROUTES;

pub(super) fn template() -> Value {
    document(DEPLOYED).unwrap()
}

pub(super) fn entries(section: &Value) -> &Map<String, Value> {
    section.as_object().unwrap()
}

fn of_type<'a>(template: &'a Value, kind: &'a str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    entries(&template["Resources"]).iter().filter(move |(_, resource)| resource["Type"].as_str().unwrap() == kind)
}

/// Returns the parameters and resources that a value refers to.
pub(super) fn referred(value: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    match value {
        Value::Array(items) => names.extend(items.iter().flat_map(referred)),
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), value) {
                    ("Ref" | "DependsOn", Value::String(name)) => names.extend([name.clone()]),
                    ("DependsOn", Value::Array(all)) => {
                        names.extend(all.iter().map(|name| name.as_str().unwrap().to_owned()));
                    }
                    ("Fn::GetAtt", Value::String(path)) => names.extend([path.split('.').next().unwrap().to_owned()]),
                    ("Fn::GetAtt", Value::Array(path)) => names.extend([path[0].as_str().unwrap().to_owned()]),
                    ("Fn::Sub", Value::String(text)) => names.extend(substituted(text)),
                    ("Fn::Sub", Value::Array(parts)) => {
                        let given = entries(&parts[1]);
                        names.extend(substituted(parts[0].as_str().unwrap()).filter(|name| !given.contains_key(name)));
                        names.extend(referred(&parts[1]));
                    }
                    _ => names.extend(referred(value)),
                }
            }
        }
        _ => {}
    }
    names
}

/// Returns the names in `${Name}` and `${Name.Attribute}`, but not in `${!literal}`.
fn substituted(text: &str) -> impl Iterator<Item = String> {
    let names = text.split("${").skip(1).filter_map(|rest| rest.split('}').next());
    names.filter(|name| !name.starts_with('!')).map(|name| name.split('.').next().unwrap().to_owned())
}

/// Returns the parameters that a value compares with `true`.
fn switches(value: &Value) -> BTreeSet<String> {
    if let Some([Value::Object(parameter), Value::String(text)]) = value["Fn::Equals"].as_array().map(Vec::as_slice)
        && text == "true"
    {
        return referred(&Value::Object(parameter.clone()));
    }
    match value {
        Value::Array(items) => items.iter().flat_map(switches).collect(),
        Value::Object(entries) => entries.values().flat_map(switches).collect(),
        _ => BTreeSet::new(),
    }
}

#[test]
fn a_parameter_that_is_compared_with_true_allows_that_exact_spelling() {
    let template = template();
    let switches: BTreeSet<_> = ["Rules", "Conditions"].iter().flat_map(|name| switches(&template[name])).collect();
    assert!(switches.contains("Subscriptions") && switches.contains("Webhooks"), "{switches:?}");
    for name in switches {
        let allowed = template["Parameters"][&name]["AllowedValues"].as_array();
        assert!(allowed.is_some_and(|values| values.contains(&json!("true"))), "{name}");
    }
}

#[test]
fn resources_for_emails_and_webhooks_are_created_only_with_them() {
    let template = template();
    let resources = entries(&template["Resources"]);
    let of_mails = resources.iter().filter(|(name, _)| name.starts_with("Mail") || name.starts_with("Deliver"));
    let of_mails: BTreeMap<_, _> = of_mails.collect();
    for (name, resource) in &of_mails {
        assert!(["Delivers", "UsesSes"].map(Value::from).contains(&resource["Condition"]), "{name}");
    }
    let types: BTreeSet<_> = of_mails.values().filter_map(|resource| resource["Type"].as_str()).collect();
    for kind in ["AWS::Serverless::Function", "AWS::SQS::Queue", "AWS::SNS::Topic", "AWS::SES::ConfigurationSet"] {
        assert!(types.contains(kind), "{kind}");
    }
    let any = json!({ "Fn::Or": [{ "Condition": "HasMail" }, { "Condition": "HasWebhooks" }] });
    assert_eq!(template["Conditions"]["Delivers"], any);
    assert!(referred(&template["Conditions"]["HasMail"]).contains("MailFrom"));
    assert!(referred(&template["Conditions"]["HasWebhooks"]).contains("Webhooks"));
}

#[test]
fn explicit_names_do_not_collide_with_another_stack_or_region() {
    const NAMES: [&str; 9] = [
        "Name",
        "BucketName",
        "DashboardName",
        "FunctionName",
        "LogGroupName",
        "ManagedPolicyName",
        "QueueName",
        "RoleName",
        "TableName",
    ];
    // Resources of these types have names that are unique in an account, across regions.
    const GLOBAL: [&str; 4] = ["AWS::CloudFront::", "AWS::CloudWatch::Dashboard", "AWS::IAM::", "AWS::S3::"];
    let template = template();
    for (name, resource) in entries(&template["Resources"]) {
        let kind = resource["Type"].as_str().unwrap();
        let properties = entries(&resource["Properties"]);
        let configured =
            properties.iter().filter(|(key, _)| key.ends_with("Config")).filter_map(|(_, v)| v.as_object());
        let given = std::iter::once(properties).chain(configured).flatten();
        for (_, given) in given.filter(|(key, given)| NAMES.contains(&key.as_str()) && given.get("Ref").is_none()) {
            let given = referred(given);
            assert!(given.contains("AWS::StackName"), "the name of {name} is the same in every stack");
            let global = GLOBAL.iter().any(|global| kind.starts_with(global));
            assert!(!global || given.contains("AWS::Region"), "the name of {name} is the same in every region");
        }
    }
}

#[test]
fn no_distribution_caches_errors() {
    let template = template();
    for (name, distribution) in of_type(&template, "AWS::CloudFront::Distribution") {
        let responses = distribution["Properties"]["DistributionConfig"]["CustomErrorResponses"].as_array();
        let uncached = responses.into_iter().flatten().filter(|response| response["ErrorCachingMinTTL"] == 0);
        let uncached: BTreeSet<u64> = uncached.filter_map(|response| response["ErrorCode"].as_u64()).collect();
        for code in [404, 500, 501, 502, 503, 504] {
            assert!(uncached.contains(&code), "{name} caches {code}");
        }
    }
}

/// Whether a CloudFront pattern covers a path. `*` matches any text.
fn covers(pattern: &str, path: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == path,
        Some((start, rest)) => path
            .strip_prefix(start)
            .is_some_and(|path| (0..=path.len()).any(|at| path.is_char_boundary(at) && covers(rest, &path[at..]))),
    }
}

/// Returns the edge's cache behavior for an API path, or `None` for the default one.
fn cache_behaviour<'a>(template: &'a Value, path: &str) -> Option<&'a Value> {
    let edge = &template["Resources"]["Edge"]["Properties"]["DistributionConfig"];
    let pattern =
        |behaviour: &Value| behaviour["PathPattern"]["Fn::Sub"].as_str().unwrap().replace("${ApiPrefix}", "api");
    let mut behaviours = edge["CacheBehaviors"].as_array().unwrap().iter();
    behaviours.find(|behaviour| covers(&pattern(behaviour), &format!("/api/{path}")))
}

fn cache_policy<'a>(template: &'a Value, behaviour: &Value) -> &'a Value {
    let policy = behaviour["CachePolicyId"]["Ref"].as_str().unwrap();
    &template["Resources"][policy]["Properties"]["CachePolicyConfig"]
}

fn request_policy<'a>(template: &'a Value, behaviour: &Value) -> &'a Value {
    let policy = behaviour["OriginRequestPolicyId"]["Ref"].as_str().unwrap();
    &template["Resources"][policy]["Properties"]["OriginRequestPolicyConfig"]
}

/// The routes whose responses are the same for everyone, except those that the function `public` serves.
const FOR_EVERYONE: [&str; 3] = ["svc-pro.counts", "svc-pro.changes", "svc-pro.feed"];
const FILES: [&str; 4] =
    ["svc-pro.embed", "svc-pro.embed.part", "svc-pro.moderation.script", "svc-pro.moderation.page"];

#[test]
fn responses_for_everyone_have_separate_cache_behaviors() {
    let template = template();
    for route in ROUTES {
        let path = route.path.replace("{type}", "posts").replace("{id}", "1").replace("{name}", "a.png");
        let behaviour = cache_behaviour(&template, &path);
        let is_public = route.function == "public";
        let own = is_public || FOR_EVERYONE.contains(&route.name) || FILES.contains(&route.name);
        assert_eq!(behaviour.is_some(), own, "{}", route.name);
        let Some(behaviour) = behaviour else { continue };
        assert_eq!(behaviour["TargetOriginId"], if is_public { "public" } else { "api" }, "{}", route.name);
        let policy = cache_policy(&template, behaviour);
        let key = &policy["ParametersInCacheKeyAndForwardedToOrigin"];
        let headers = key["HeadersConfig"]["Headers"].to_string();
        assert!(!headers.contains("Authorization") && !headers.contains("Accept-Language"), "{}", route.name);
        // A minimum TTL would cache responses that must not be cached.
        let bounds = json!([0, if is_public { 86_400 } else { 3_600 }]);
        assert_eq!(json!([policy["MinTTL"], policy["MaxTTL"]]), bounds, "{}", route.name);
        assert_eq!((&key["EnableAcceptEncodingGzip"], &behaviour["Compress"]), (&json!(true), &json!(true)));
        // CloudFront refuses methods that a behavior doesn't allow with its own error page. Behaviors other than those
        // of the function `public` allow all methods, so that the API returns the error.
        let edge = &template["Resources"]["Edge"]["Properties"]["DistributionConfig"];
        let all = &edge["DefaultCacheBehavior"]["AllowedMethods"];
        let methods = if is_public { &json!(["GET", "HEAD", "OPTIONS"]) } else { all };
        assert_eq!(&behaviour["AllowedMethods"], methods, "{}", route.name);
    }
}

#[test]
fn the_edge_caches_counts_by_their_threads_and_files_by_path_alone() {
    let template = template();
    let key = |path: &str| {
        let behaviour = cache_behaviour(&template, path).unwrap();
        cache_policy(&template, behaviour)["ParametersInCacheKeyAndForwardedToOrigin"].clone()
    };
    let counts = key("counts");
    assert!(counts["QueryStringsConfig"]["QueryStrings"].as_array().unwrap().contains(&json!("threads")));
    // API Gateway's response to a preflight depends on this header.
    assert_eq!(counts["HeadersConfig"]["Headers"], json!(["Origin"]));
    for file in ["embed.js", "embed/*", "moderation.js", "moderate"] {
        let key = key(file);
        assert_eq!(key["HeadersConfig"], json!({ "HeaderBehavior": "none" }));
        assert_eq!(key["QueryStringsConfig"], json!({ "QueryStringBehavior": "none" }));
        let headers = &cache_behaviour(&template, file).unwrap()["ResponseHeadersPolicyId"]["Ref"];
        let headers = &template["Resources"][headers.as_str().unwrap()]["Properties"]["ResponseHeadersPolicyConfig"];
        assert_eq!(headers["CorsConfig"]["AccessControlAllowOrigins"]["Items"], json!(["*"]), "{file}");
    }
}

#[test]
fn the_edge_distinguishes_public_responses_by_the_parameters_that_change_them_and_by_newest() {
    let template = template();
    for path in ["public/posts/1/comments", "posts/1/comments.html"] {
        let behaviour = cache_behaviour(&template, path).unwrap();
        let key = &cache_policy(&template, behaviour)["ParametersInCacheKeyAndForwardedToOrigin"];
        assert_eq!(key["HeadersConfig"], json!({ "HeaderBehavior": "none" }));
        let parameters =
            ["page", "per_page", "sort", "lang", "fragment", "parent", "cursor", "include", "newest"].map(Value::from);
        assert_eq!(key["QueryStringsConfig"]["QueryStrings"], json!(parameters));
        let headers = behaviour["ResponseHeadersPolicyId"]["Ref"].as_str().unwrap();
        let headers = &template["Resources"][headers]["Properties"]["ResponseHeadersPolicyConfig"]["CorsConfig"];
        assert_eq!(headers["AccessControlAllowOrigins"]["Items"], json!({ "Ref": "CorsOrigins" }));
        assert_eq!(headers["OriginOverride"], true);
    }
    // This path is the record `comments.html`, which a moderator describes with PUT.
    assert!(cache_behaviour(&template, "posts/comments.html").is_none());
}

#[test]
fn only_parameters_that_distinguish_responses_at_the_edge_reach_the_service() {
    let template = template();
    let edge = &template["Resources"]["Edge"]["Properties"]["DistributionConfig"];
    let behaviours = edge["CacheBehaviors"].as_array().unwrap().iter().chain([&edge["DefaultCacheBehavior"]]);
    for behaviour in behaviours {
        let key = &cache_policy(&template, behaviour)["ParametersInCacheKeyAndForwardedToOrigin"];
        let forwarded = request_policy(&template, behaviour);
        // CloudFront also forwards the parameters in the cache key.
        let all = json!({ "QueryStringBehavior": "all" });
        let expected = if key["QueryStringsConfig"] == all { all } else { json!({ "QueryStringBehavior": "none" }) };
        assert_eq!(forwarded["QueryStringsConfig"], expected, "{}", behaviour["PathPattern"]);
    }
}

#[test]
fn the_edge_alone_calls_the_function_public_by_its_url_and_proves_whose_address_it_forwards() {
    let template = template();
    let resources = &template["Resources"];
    let edge = &resources["Edge"]["Properties"]["DistributionConfig"];
    let origin = |id: &str| edge["Origins"].as_array().unwrap().iter().find(|origin| origin["Id"] == id).unwrap();
    let public = origin("public");
    assert_eq!(resources["PublicAddress"]["Properties"]["AuthType"], "AWS_IAM");
    assert!(referred(&public["DomainName"]).contains("PublicAddress"), "{public}");
    let access = &resources["PublicAccess"]["Properties"]["OriginAccessControlConfig"];
    assert_eq!(
        (&access["OriginAccessControlOriginType"], &access["SigningBehavior"]),
        (&json!("lambda"), &json!("always"))
    );
    let permissions = of_type(&template, "AWS::Lambda::Permission").map(|(_, permission)| &permission["Properties"]);
    let of_public = permissions.filter(|permission| permission["FunctionName"]["Ref"] == "Public");
    let from_edge = of_public.filter(|permission| permission["SourceArn"].to_string().contains("distribution/${Edge}"));
    let actions: BTreeSet<&str> = from_edge.filter_map(|permission| permission["Action"].as_str()).collect();
    assert_eq!(actions, BTreeSet::from(["lambda:InvokeFunction", "lambda:InvokeFunctionUrl"]));

    // CloudFront sends the same secret header to this origin as to API Gateway.
    assert_eq!(public["OriginCustomHeaders"], origin("api")["OriginCustomHeaders"]);
    for (name, policy) in of_type(&template, "AWS::CloudFront::OriginRequestPolicy") {
        let forwarded = &policy["Properties"]["OriginRequestPolicyConfig"]["HeadersConfig"]["Headers"];
        let forwards = |name: &str| forwarded.as_array().unwrap().contains(&json!(name));
        assert!(forwards("CloudFront-Viewer-Address") && !forwards("Host"), "{name}: {forwarded}");
    }
    // The timeout is just above the function's own, and CloudFront doesn't retry.
    let bound = template["Globals"]["Function"]["Timeout"].as_u64().unwrap();
    assert_eq!(public["CustomOriginConfig"]["OriginReadTimeout"], bound + 1);
    assert_eq!((&public["ConnectionAttempts"], &public["ConnectionTimeout"]), (&json!(1), &json!(2)));
}

#[test]
fn the_default_cache_behavior_distinguishes_callers_and_languages() {
    let template = template();
    let edge = &template["Resources"]["Edge"]["Properties"]["DistributionConfig"];
    let policy = cache_policy(&template, &edge["DefaultCacheBehavior"]);
    let headers = &policy["ParametersInCacheKeyAndForwardedToOrigin"]["HeadersConfig"]["Headers"];
    assert_eq!(headers, &json!(["Authorization", "Accept-Language", "Origin"]));
}

#[test]
fn the_edge_passes_on_the_key_of_a_guest_and_distinguishes_no_responses_by_it() {
    let template = template();
    let edge = &template["Resources"]["Edge"]["Properties"]["DistributionConfig"];
    let behaviours = edge["CacheBehaviors"].as_array().unwrap().iter().chain([&edge["DefaultCacheBehavior"]]);
    for behaviour in behaviours {
        let forwarded = &request_policy(&template, behaviour)["HeadersConfig"]["Headers"];
        assert!(forwarded.as_array().unwrap().contains(&json!("Comment-Key")));
        // Responses to requests with a key are never cached, and reads with a key have `mine=1`.
        assert!(!cache_policy(&template, behaviour).to_string().contains("Comment-Key"));
    }
}

#[test]
fn api_gateway_and_the_functions_respond_to_preflights_alike() {
    let template = template();
    let configured = &template["Resources"]["Api"]["Properties"]["CorsConfiguration"];
    let listed = |names: &str| names.split(',').map(Value::from).collect::<Value>();
    assert_eq!(configured["AllowMethods"], listed(cors::METHODS));
    assert_eq!(configured["AllowHeaders"], listed(cors::HEADERS));
    assert_eq!(configured["MaxAge"], cors::MAX_AGE);
    let origins = &template["Globals"]["Function"]["Environment"]["Variables"]["SVC_CORS_ORIGINS"];
    assert_eq!(referred(&configured["AllowOrigins"]), referred(origins));
}

#[test]
fn a_function_with_an_explicit_role_may_log_trace_and_send_failed_events() {
    // SAM grants the permissions checked here only to roles that it generates.
    let template = template();
    let resources = &template["Resources"];
    for (name, function) in of_type(&template, "AWS::Serverless::Function") {
        let properties = &function["Properties"];
        let Some(role) = properties["Role"]["Fn::GetAtt"].as_str() else { continue };
        let role = &resources[role.trim_end_matches(".Arn")]["Properties"];
        let managed = role["ManagedPolicyArns"].to_string();
        assert!(managed.contains("service-role/AWSLambdaBasicExecutionRole"), "{name} cannot log");
        assert!(managed.contains("AWSXrayWriteOnlyAccess"), "{name} cannot be traced");
        let queue = &properties["EventInvokeConfig"]["DestinationConfig"]["OnFailure"]["Destination"];
        let statements = role["Policies"].as_array().unwrap().iter();
        let statements = statements.filter_map(|policy| policy["PolicyDocument"]["Statement"].as_array()).flatten();
        let mut sends = statements.filter(|statement| statement["Action"] == "sqs:SendMessage");
        assert!(sends.any(|statement| statement["Resource"] == *queue), "{name} cannot send failed events");
        assert!(properties.get("Policies").is_none(), "SAM does not add the policies of {name} to an explicit role");
    }
}

/// The functions that verify no tokens, and the secrets they need.
const WITHOUT_TOKENS: [(&str, Needs); 4] =
    [("delivery", Needs::Salt), ("events", Needs::Salt), ("jobs", Needs::Nothing), ("public", Needs::Salt)];

fn environment(template: &Value, function: &Value) -> Map<String, Value> {
    let of_all = &template["Globals"]["Function"]["Environment"]["Variables"];
    let own = function["Properties"]["Environment"]["Variables"].as_object();
    entries(of_all).iter().chain(own.into_iter().flatten()).map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[test]
fn every_function_that_stores_or_emails_a_name_has_the_name_of_the_site() {
    let template = template();
    let functions = of_type(&template, "AWS::Serverless::Function");
    let named = functions.filter(|(_, function)| environment(&template, function).contains_key("SVC_SITE_NAME"));
    assert_eq!(named.map(|(name, _)| &**name).collect::<Vec<_>>(), ["Comments", "Delivery", "SignInByCode"]);
}

fn statements<'a>(template: &'a Value, function: &'a Value) -> Vec<&'a Value> {
    let policies = function["Properties"]["Policies"].as_array().into_iter().flatten();
    let documents = policies.map(|policy| match policy["Ref"].as_str() {
        Some(managed) => &template["Resources"][managed]["Properties"]["PolicyDocument"],
        None => policy,
    });
    let statements = documents.filter_map(|document| document["Statement"].as_array()).flatten();
    statements.map(|statement| statement["Fn::If"].get(1).unwrap_or(statement)).collect()
}

#[test]
fn a_function_starts_with_the_secrets_of_its_environment_and_may_read_no_others() {
    const SECRETS: [&str; 9] = [
        "SVC_AKISMET_KEY",
        "SVC_EDGE_SECRET",
        "SVC_GITHUB_CLIENT_SECRET",
        "SVC_GOOGLE_CLIENT_SECRET",
        "SVC_JWT_SECRET",
        "SVC_OIDC_CLIENT_SECRET",
        "SVC_SIGN_IN_SEED",
        "SVC_SMTP_URL",
        "SVC_VISITOR_SALT",
    ];
    let template = template();
    let named = |value: &Value| referred(value).into_iter().filter(|name| !name.starts_with("AWS::"));
    for (name, function) in of_type(&template, "AWS::Serverless::Function") {
        let binary = function["Metadata"]["BuildProperties"]["Binary"].as_str().unwrap();
        let environment = environment(&template, function);
        let secrets = environment.iter().filter(|(variable, _)| SECRETS.contains(&variable.as_str()));
        let given: BTreeSet<_> = secrets.flat_map(|(_, value)| named(value)).collect();
        let statements = statements(&template, function);
        let reads = statements.iter().filter(|one| one["Action"].to_string().contains("secretsmanager:GetSecretValue"));
        let granted: BTreeSet<_> = reads.flat_map(|statement| named(&statement["Resource"])).collect();
        assert_eq!(given, granted, "{name}");
        for secret in ["SignInSeed", "GithubClientSecretArn", "GoogleClientSecretArn", "OidcClientSecretArn"] {
            assert_eq!(granted.contains(secret), name == "SignInByCode", "{name} and {secret}");
        }

        let needs = WITHOUT_TOKENS.iter().find(|(beside, _)| *beside == binary).map_or(Needs::Callers, |(_, n)| *n);
        let value = |variable: &str| match environment.get(variable)? {
            Value::String(text) => Some(text.clone()),
            _ if SECRETS.contains(&variable) || variable == "TABLE_NAME" => Some(format!("arn:of-{variable}")),
            _ => Some(String::new()),
        };
        if binary != "thumbnails" {
            Config::from_vars_with(needs, value).unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        }
        let expected = match needs {
            Needs::Callers if binary != "thumbnails" => "JwtSecret",
            Needs::Salt => "VisitorSalt",
            _ => "",
        };
        assert_eq!(given.is_empty(), expected.is_empty(), "{name} is given {given:?}");
        assert!(expected.is_empty() || given.contains(expected), "{name} is given {given:?}");
    }
}

#[test]
fn no_function_but_the_one_that_signs_may_write_the_public_keys() {
    let deployed = Template::deployed(&[]).unwrap();
    let writes = ["BatchWriteItem", "DeleteItem", "PutItem", "UpdateItem"];
    let denied = BTreeSet::from(writes.map(|action| (format!("dynamodb:{action}"), "K".to_owned())));
    for (name, function) in of_type(&template(), "AWS::Serverless::Function") {
        let binary = function["Metadata"]["BuildProperties"]["Binary"].as_str().unwrap();
        let uses_the_table = deployed.grants(binary).iter().any(|(action, _)| action.starts_with("dynamodb:"));
        let expected = if uses_the_table && binary != "sign_in" { denied.clone() } else { BTreeSet::new() };
        assert_eq!(deployed.denials(binary), expected, "{name}");
    }
}

#[test]
fn functions_may_decrypt_what_they_read_with_the_keys_of_the_parameter() {
    let template = template();
    for (name, function) in of_type(&template, "AWS::Serverless::Function") {
        let statements = statements(&template, function);
        let brought = |statement: &&&Value| statement["Action"].to_string().contains("ssm:GetParameter");
        let decrypts = |statement: &&&Value| statement["Action"] == "kms:Decrypt";
        let keys: Vec<_> = statements.iter().filter(decrypts).flat_map(|one| referred(&one["Resource"])).collect();
        let expected =
            if statements.iter().any(|one| brought(&one)) { vec!["SecretKeyArns".to_owned()] } else { vec![] };
        assert_eq!(keys, expected, "{name}");
    }
}

/// Returns the queues that invoke functions, each with its function.
fn polled(template: &Value) -> Vec<(&str, &Value, &Value)> {
    let functions = of_type(template, "AWS::Serverless::Function");
    let events = functions.flat_map(|(name, function)| {
        let events = function["Properties"]["Events"].as_object().into_iter().flat_map(Map::values);
        events.map(move |event| (name.as_str(), function, event))
    });
    events.filter(|(_, _, event)| event["Type"] == "SQS").collect()
}

#[test]
fn a_function_that_a_queue_invokes_is_bounded_by_the_queue() {
    // If the function had reserved concurrency, the poller would receive messages that it can't deliver, until they
    // become dead letters.
    let template = template();
    assert_eq!(polled(&template).len(), 2);
    for (name, function, event) in polled(&template) {
        let reserved = &function["Properties"]["ReservedConcurrentExecutions"];
        assert_eq!(*reserved, json!({ "Ref": "AWS::NoValue" }), "{name}");
        let scaling = json!([
            "HasReservedConcurrency",
            { "MaximumConcurrency": { "Ref": "ReservedConcurrency" } },
            { "Ref": "AWS::NoValue" }
        ]);
        assert_eq!(event["Properties"]["ScalingConfig"]["Fn::If"], scaling, "{name}");
    }
}

#[test]
fn a_function_that_sends_to_its_own_queue_is_not_taken_for_a_loop() {
    let template = template();
    for (name, function, event) in polled(&template) {
        let queue = &event["Properties"]["Queue"];
        let sends = |one: &&Value| one["Action"].to_string().contains("sqs:SendMessage") && one["Resource"] == *queue;
        assert!(statements(&template, function).iter().any(sends), "{name}");
        assert_eq!(function["Properties"]["RecursiveLoop"], "Allow", "{name}");
    }
}

#[test]
fn failing_stream_records_are_given_up_by_age_before_they_expire() {
    let template = template();
    let changed = &template["Resources"]["Events"]["Properties"]["Events"]["Changed"]["Properties"];
    let age = changed["MaximumRecordAgeInSeconds"].as_u64().unwrap();
    assert!((6 * 3600..24 * 3600).contains(&age), "{age}");
    assert!(changed.get("MaximumRetryAttempts").is_none() && changed["DestinationConfig"]["OnFailure"].is_object());
}

#[test]
fn bounces_are_encrypted_and_kept_when_they_cannot_be_delivered() {
    let template = template();
    let of = |name: &str| &template["Resources"][name]["Properties"];
    let principal = |name: &str| json!([{ "Service": name }]);
    assert_eq!(of("MailTopic")["KmsMasterKeyId"]["Ref"], "MailTopicKey");
    let key = of("MailTopicKey")["KeyPolicy"]["Statement"].as_array().unwrap();
    assert!(key.iter().any(|statement| json!([statement["Principal"]]) == principal("ses.amazonaws.com")));
    let publish = &of("MailTopicPolicy")["PolicyDocument"]["Statement"][0]["Condition"]["StringEquals"];
    assert!(publish["AWS:SourceArn"].to_string().contains("configuration-set/${MailConfiguration}"), "{publish}");
    let dead_letters = &of("MailSubscription")["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"];
    assert_eq!(*dead_letters, "DeliveriesDeadLetters.Arn");
    let accepted = &of("DeliveriesDeadLettersPolicy")["PolicyDocument"]["Statement"][0];
    assert_eq!(json!([accepted["Principal"]]), principal("sns.amazonaws.com"));
    assert_eq!(accepted["Condition"]["ArnEquals"]["aws:SourceArn"]["Ref"], "MailTopic");
}

/// Returns each metric that an alarm uses, with its dimensions.
fn alarmed(template: &Value) -> BTreeSet<(String, String)> {
    let mut metrics = BTreeSet::new();
    let mut add = |metric: &Value, name: &Value| {
        let dimensions = metric["Dimensions"].as_array().into_iter().flatten();
        let of: Vec<_> = dimensions.flat_map(|dimension| referred(&dimension["Value"])).collect();
        metrics.insert((name.as_str().unwrap().to_owned(), of.concat()));
    };
    for (_, alarm) in of_type(template, "AWS::CloudWatch::Alarm") {
        let properties = &alarm["Properties"];
        if properties["MetricName"].is_string() {
            add(properties, &properties["MetricName"]);
        }
        for query in properties["Metrics"].as_array().into_iter().flatten() {
            let query = query["Fn::If"].get(1).unwrap_or(query);
            let metric = &query["MetricStat"]["Metric"];
            if metric.is_object() {
                add(metric, &metric["MetricName"]);
            }
        }
    }
    metrics
}

#[test]
fn ten_metrics_of_alarms_watch_the_responses_the_stream_the_queues_and_the_bounces() {
    let template = template();
    let mut expected = vec![
        ("5xx", "Api".to_owned()),
        ("Url5xxCount", "Public".to_owned()),
        ("Reputation.BounceRate", String::new()),
        ("Reputation.ComplaintRate", String::new()),
    ];
    for (name, function) in of_type(&template, "AWS::Serverless::Function") {
        let mut events = function["Properties"]["Events"].as_object().into_iter().flat_map(Map::values);
        if events.any(|event| event["Type"] == "DynamoDB") {
            expected.push(("IteratorAge", name.clone()));
        }
    }
    let polled: BTreeSet<_> = polled(&template)
        .iter()
        .map(|(_, _, event)| referred(&event["Properties"]["Queue"]).pop_first().unwrap())
        .collect();
    // A failed thumbnail affects nothing else, so its queue has no alarm.
    for (name, _) in of_type(&template, "AWS::SQS::Queue").filter(|(name, _)| *name != "ThumbnailsFailed") {
        let metric =
            if polled.contains(name) { "ApproximateAgeOfOldestMessage" } else { "ApproximateNumberOfMessagesVisible" };
        expected.push((metric, name.clone()));
    }
    let expected: BTreeSet<_> = expected.into_iter().map(|(metric, of)| (metric.to_owned(), of)).collect();
    assert_eq!(alarmed(&template), expected);
    assert_eq!(expected.len(), 10, "more are not free");
}

#[test]
fn the_dashboard_shows_latency_crashes_throttles_and_what_was_given_up() {
    let template = template();
    let dashboard = &template["Resources"]["Dashboard"]["Properties"]["DashboardBody"];
    let (text, shown) = (dashboard["Fn::Sub"][0].as_str().unwrap(), referred(dashboard));
    for (name, _) in of_type(&template, "AWS::Serverless::Function") {
        assert!(shown.contains(name), "{name}");
    }
    for name in ["ThumbnailsFailed", "EventsDeadLetters", "JobsDeadLetters"] {
        assert!(shown.contains(name), "{name}");
    }
    for metric in ["\"Latency\"", "\"Errors\"", "\"Throttles\"", "ThrottledRequests"] {
        assert!(text.contains(metric), "{metric}");
    }
    // Without an index dimension, these metrics omit throttled requests to indexes.
    assert!(!text.contains("ReadThrottleEvents") && !text.contains("WriteThrottleEvents"));
}
