//! Hands composed mails to a mail server: Amazon SES, or any server that speaks SMTP.

use std::net::IpAddr;
use std::time::Duration;

use lettre::address::Envelope;
use lettre::transport::smtp::PoolConfig;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use shared::aws::ses::{NotSent, RawMail, Ses};
use shared::domain::secret::Secret;
use shared::error::Fault;

/// Bounds each step of the conversation with a server.
const TIMEOUT: Duration = Duration::from_secs(10);
/// As many as a batch has messages.
const CONNECTIONS: u32 = 10;

pub enum Mailer {
    Ses(Box<Ses>),
    Smtp(AsyncSmtpTransport<Tokio1Executor>),
}

impl Mailer {
    /// A server by its address: `smtps://`, or `smtp://` with STARTTLS. Only a server on this machine is spoken to without
    /// TLS.
    ///
    /// `root` is a certificate (PEM) to trust besides those of the public web.
    ///
    /// # Errors
    ///
    /// When the address or the certificate is not valid.
    pub fn smtp(url: &Secret, root: Option<&[u8]>) -> Result<Self, Fault> {
        let doing = "reading SVC_SMTP_URL";
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(&with_tls(url.expose()));
        // What the library says may hold the password.
        let mut transport = transport.map_err(|_| Fault::new(doing, "it is not valid"))?;
        if let Some(root) = root {
            transport = transport.tls(trusting(url.expose(), root).map_err(|error| Fault::new(doing, error))?);
        }
        let pool = PoolConfig::new().max_size(CONNECTIONS);
        Ok(Self::Smtp(transport.timeout(Some(TIMEOUT)).pool_config(pool).build()))
    }

    /// # Errors
    ///
    /// When the server does not say that it has taken the mail.
    pub async fn send(&self, mail: &RawMail) -> Result<(), NotSent> {
        match self {
            Self::Ses(ses) => ses.send(mail).await,
            Self::Smtp(transport) => {
                let envelope = envelope(mail).ok_or_else(|| refused("an address is not valid"))?;
                transport.send_raw(&envelope, &mail.raw).await.map(drop).map_err(|error| not_sent(&error))
            }
        }
    }
}

/// TLS as the address asks for it, with one more certificate to trust.
fn trusting(url: &str, root: &[u8]) -> Result<Tls, lettre::transport::smtp::Error> {
    let host = url.parse().ok().and_then(|uri: http::Uri| Some(uri.host()?.to_owned())).unwrap_or_default();
    let parameters = TlsParameters::builder(host).add_root_certificate(Certificate::from_pem(root)?).build()?;
    Ok(if url.starts_with("smtps:") { Tls::Wrapper(parameters) } else { Tls::Required(parameters) })
}

/// Asks for STARTTLS, unless the address says otherwise or names this machine.
fn with_tls(url: &str) -> String {
    let uri: Option<http::Uri> = url.parse().ok();
    let host = uri.as_ref().and_then(http::Uri::host).unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    if url.starts_with("smtps:") || url.contains("tls=") || is_here {
        return url.to_owned();
    }
    format!("{url}{}tls=required", if url.contains('?') { '&' } else { '?' })
}

fn envelope(mail: &RawMail) -> Option<Envelope> {
    let to: Vec<Address> = mail.to.iter().map(|address| address.parse().ok()).collect::<Option<_>>()?;
    Envelope::new(Some(mail.from.parse().ok()?), to).ok()
}

fn refused(reason: &str) -> NotSent {
    NotSent { unknown: false, reason: reason.to_owned() }
}

/// Answers of servers may hold addresses, so that only their codes are told.
fn not_sent(error: &lettre::transport::smtp::Error) -> NotSent {
    match error.status() {
        Some(code) => refused(&format!("refused with {code}")),
        None if error.is_client() || error.is_tls() || is_connecting(error) => refused("no connection"),
        None => NotSent { unknown: true, reason: "the connection failed".to_owned() },
    }
}

/// Whether there was no connection yet.
fn is_connecting(error: &lettre::transport::smtp::Error) -> bool {
    error.to_string().starts_with("Connection error")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_elsewhere_is_never_spoken_to_without_tls() {
        for (url, expected) in [
            ("smtp://user:pass@mail.example.org:587", "smtp://user:pass@mail.example.org:587?tls=required"),
            ("smtp://mail.example.org/name?x=1", "smtp://mail.example.org/name?x=1&tls=required"),
            ("smtp://user:127.0.0.1@mail.example.org", "smtp://user:127.0.0.1@mail.example.org?tls=required"),
            ("smtps://user:pass@mail.example.org", "smtps://user:pass@mail.example.org"),
            ("smtp://127.0.0.1:1025", "smtp://127.0.0.1:1025"),
            ("smtp://localhost:1025?tls=required", "smtp://localhost:1025?tls=required"),
        ] {
            assert_eq!(with_tls(url), expected);
        }
    }
}
