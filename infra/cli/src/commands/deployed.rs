//! Finds the API and the token secret of a deployed stack in its `CloudFormation` description. A single signed call
//! doesn't justify another SDK crate.

use std::collections::HashMap;
use std::time::Duration;

use aws_credential_types::provider::ProvideCredentials;
use aws_types::SdkConfig;
use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::Event;
use serde_json::json;
use shared::aws::call::{Call, CallError, Caller, Operation};
use shared::aws::{config, https, secrets};
use shared::config::{Auth, without_prefix};

use super::Failure;

const TIMEOUT: Duration = Duration::from_secs(10);
const ACTIONS: &str = "cloudformation:DescribeStacks and secretsmanager:GetSecretValue";

pub(super) struct Stack {
    name: String,
    values: HashMap<String, String>,
}

const NO_CREDENTIALS: &str = "no AWS credentials in the environment; for a profile or SSO, run: \
                              eval \"$(aws configure export-credentials --profile NAME --format env)\"";

/// The AWS configuration for commands that use a deployed stack. The error names the missing part of the environment.
pub(super) async fn sdk_config() -> Result<SdkConfig, Failure> {
    let sdk = config::sdk_config().await;
    sdk.region().ok_or("AWS_REGION is not set; set it to the region of the stack, such as eu-west-1")?;
    let provider = sdk.credentials_provider().ok_or(NO_CREDENTIALS)?;
    provider.provide_credentials().await.map_err(|_| NO_CREDENTIALS)?;
    Ok(sdk)
}

impl Stack {
    pub(super) async fn describe(sdk: &SdkConfig, name: &str) -> Result<Self, Failure> {
        let region = sdk.region().ok_or("AWS_REGION is not set")?;
        let domain = if region.as_ref().starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        let call = Call {
            service: "cloudformation",
            region: region.as_ref(),
            host: &format!("https://cloudformation.{region}.{domain}"),
            operation: Operation::Query,
            input: json!({ "Action": "DescribeStacks", "Version": "2010-05-15", "StackName": name }),
        };
        let answer = Caller::new(sdk.clone(), https::Client::for_aws(TIMEOUT)).send(&call).await.map_err(unanswered)?;
        let values = texts(&String::from_utf8_lossy(answer.body())).map_err(|error| {
            format!("CloudFormation returned {} and a body that isn't valid XML: {error}", answer.status())
        })?;
        if !answer.status().is_success() {
            let said = |key| values.get(key).map(String::as_str).unwrap_or_default();
            return Err(refused(name, region.as_ref(), said("Code"), said("Message")).into());
        }
        Ok(Self { name: name.to_owned(), values })
    }

    /// The value of a parameter or an output; `None` if it's missing or empty.
    fn value(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The public base URL of the API.
    pub(super) fn api(&self) -> Result<String, Failure> {
        let public = self.value("PublicUrl").zip(self.value("ApiPrefix"));
        let public = public.map(|(base, prefix)| format!("{}/{prefix}", without_prefix(base, prefix)));
        let made = || self.value("EdgeUrl").or(self.value("ApiUrl")).map(str::to_owned);
        Ok(public.or_else(made).ok_or_else(|| {
            format!("the stack {} has no output ApiUrl; pass the stack that template.yaml was deployed as", self.name)
        })?)
    }

    /// The secret that signs tokens for the stack, with the issuer and the audience of the tokens.
    pub(super) async fn auth(&self, sdk: &SdkConfig) -> Result<Auth, Failure> {
        let secret = self.value("JwtSecretArn").or(self.value("JwtSecretName")).ok_or_else(|| {
            format!(
                "the stack {} has no secret, because it verifies tokens with JwksUrl; sign in to your site as a user \
                 named in Moderators, and paste the token at {}/moderate",
                self.name,
                self.api().unwrap_or_default()
            )
        })?;
        let secret = secrets::resolve(secret, sdk).await;
        let secret = secret.map_err(|error| format!("{error}; the command needs {ACTIONS}"))?;
        let text = |key| self.value(key).map(str::to_owned);
        Ok(Auth {
            secret: Some(secret),
            jwks_url: None,
            issuer: text("JwtIssuer"),
            audience: text("JwtAudience"),
            moderators: Vec::new(),
        })
    }
}

fn unanswered(error: CallError) -> String {
    match error {
        CallError::Credentials(_) => NO_CREDENTIALS.to_owned(),
        error => format!("CloudFormation: {}; try again, or set AWS_REGION to the region of the stack", error.kind()),
    }
}

fn refused(name: &str, region: &str, code: &str, message: &str) -> String {
    match code {
        "ValidationError" => format!(
            "there is no stack {name} in {region}; check the name, and set AWS_REGION to the region of the stack"
        ),
        "AccessDenied" | "AccessDeniedException" => format!("{message}; the command needs {ACTIONS}"),
        "ExpiredToken" | "InvalidClientTokenId" | "SignatureDoesNotMatch" => {
            format!(
                "AWS rejected the credentials ({code}); set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN to the \
                 output of aws configure export-credentials --format env"
            )
        }
        _ => format!("CloudFormation returned {code}: {message}; try again"),
    }
}

/// Maps the name of each element to its text. For a pair such as `OutputKey` and `OutputValue`, maps the key's text to
/// the value's text.
fn texts(xml: &str) -> Result<HashMap<String, String>, quick_xml::Error> {
    let (mut reader, mut texts) = (Reader::from_str(xml), HashMap::new());
    let (mut text, mut key) = (String::new(), String::new());
    loop {
        match reader.read_event()? {
            Event::Eof => return Ok(texts),
            Event::Start(_) => text.clear(),
            Event::Text(part) => text.push_str(&part.decode()?),
            Event::GeneralRef(name) => text.push_str(&unescape(&format!("&{};", name.decode()?))?),
            Event::End(element) => {
                let name = String::from_utf8_lossy(element.name().as_ref()).into_owned();
                let text = std::mem::take(&mut text);
                match name.as_str() {
                    "OutputKey" | "ParameterKey" => key = text,
                    "OutputValue" | "ParameterValue" => drop(texts.insert(std::mem::take(&mut key), text)),
                    _ => drop(texts.insert(name, text)),
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(values: &[(&str, &str)]) -> Stack {
        let values = values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Stack { name: "comments".to_owned(), values }
    }

    #[test]
    fn outputs_and_parameters_are_found_by_their_keys() {
        let xml = "<R><Parameters><member><ParameterKey>SiteName</ParameterKey><ParameterValue>A &amp; B</ParameterValue>\
                   </member></Parameters><Outputs><member><Description>Base.</Description><OutputKey>ApiUrl</OutputKey>\
                   <OutputValue>https://x</OutputValue></member></Outputs></R>";
        let values = texts(xml).unwrap();
        assert_eq!((values["SiteName"].as_str(), values["ApiUrl"].as_str()), ("A & B", "https://x"));
        assert!(texts("<R><x></R>").is_err());
    }

    #[test]
    fn the_api_address_of_a_stack_is_the_one_that_visitors_use() {
        let made = ("ApiUrl", "https://api/svc/api/v1");
        let edge = ("EdgeUrl", "https://edge/svc/api/v1");
        let public = [("PublicUrl", "https://comments.example.org/"), ("ApiPrefix", "c")];
        assert_eq!(stack(&[made, ("PublicUrl", "")]).api().unwrap(), made.1);
        assert_eq!(stack(&[made, edge]).api().unwrap(), edge.1);
        assert_eq!(stack(&[made, edge, public[0], public[1]]).api().unwrap(), "https://comments.example.org/c");
        let base = ("PublicUrl", "https://comments.example.org/c/");
        assert_eq!(stack(&[made, base, public[1]]).api().unwrap(), "https://comments.example.org/c");
        assert!(stack(&[]).api().unwrap_err().to_string().contains("template.yaml"));
    }
}
