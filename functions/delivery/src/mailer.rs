//! Hands composed emails to a mail server: Amazon SES, or any server that speaks SMTP. `main.rs` chooses one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lettre::address::Envelope;
use lettre::transport::smtp::PoolConfig;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use shared::aws::ses::{NotSent, RawMail, Ses};
use shared::domain::origin::is_loopback;
use shared::domain::secret::Secret;
use shared::error::Fault;
use url::Url;

/// Timeout for opening the TCP connection. The library sets none for the steps that follow.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Connections in the pool: one for each message of a batch.
const CONNECTIONS: u32 = 10;
const NO_CONNECTION: &str = "no connection";

pub enum Mailer {
    Ses(Box<Ses>),
    Smtp(Smtp),
    /// Counts the emails that another mailer sends.
    Counted(Box<Mailer>, Arc<Tally>),
}

/// Numbers of emails since the process started.
#[derive(Debug, Default)]
pub struct Tally {
    pub sent: AtomicU64,
    pub failed: AtomicU64,
}

pub struct Smtp {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    bounds: Bounds,
}

/// Time limits, together shorter than a claim.
#[derive(Clone, Copy)]
struct Bounds {
    /// For connecting, including TLS and login.
    connecting: Duration,
    /// For handing over one email.
    sending: Duration,
}

const BOUNDS: Bounds = Bounds { connecting: Duration::from_secs(20), sending: Duration::from_mins(1) };

impl Mailer {
    /// Returns a mailer for the server at this address: `smtps://`, or `smtp://` with STARTTLS. Only a server on this
    /// machine may be used without TLS.
    ///
    /// `root` is a certificate (PEM) to trust in addition to the public root certificates.
    ///
    /// # Errors
    ///
    /// When the address or the certificate is invalid.
    pub fn smtp(url: &Secret, root: Option<&[u8]>) -> Result<Self, Fault> {
        let doing = "reading SVC_SMTP_URL";
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(&with_tls(url.expose()));
        // The library's message may contain the password.
        let mut transport = transport.map_err(|_| Fault::new(doing, "it is not valid"))?;
        if let Some(root) = root {
            transport = transport.tls(trusting(url.expose(), root).map_err(|error| Fault::new(doing, error))?);
        }
        let pool = PoolConfig::new().max_size(CONNECTIONS);
        let transport = transport.timeout(Some(TIMEOUT)).pool_config(pool).build();
        Ok(Self::Smtp(Smtp { transport, bounds: BOUNDS }))
    }

    /// # Errors
    ///
    /// When the server does not confirm that it has accepted the email.
    pub async fn send(&self, mail: &RawMail) -> Result<(), NotSent> {
        match self {
            Self::Ses(ses) => ses.send(mail).await,
            Self::Smtp(smtp) => smtp.send(mail).await,
            Self::Counted(mailer, tally) => {
                let sent = Box::pin(mailer.send(mail)).await;
                let count = if sent.is_ok() { &tally.sent } else { &tally.failed };
                count.fetch_add(1, Ordering::Relaxed);
                sent
            }
        }
    }
}

impl Smtp {
    async fn send(&self, mail: &RawMail) -> Result<(), NotSent> {
        let envelope = envelope(mail).ok_or_else(|| refused("an address is not valid"))?;
        let transport = self.transport.clone();
        match within(self.bounds.connecting, async move { transport.test_connection().await }).await {
            Some(Ok(true)) => {}
            Some(Err(error)) if error.status().is_some() => return Err(not_sent(&error)),
            _ => return Err(refused(NO_CONNECTION)),
        }
        let (transport, raw) = (self.transport.clone(), mail.raw.clone());
        let sending = async move { transport.send_raw(&envelope, &raw).await };
        match within(self.bounds.sending, sending).await {
            // A response here is to this email, not to the connection or the login, so a permanent error counts against
            // the recipient.
            Some(sent) => sent.map(drop).map_err(|error| {
                let permanent = error.is_permanent();
                NotSent { permanent, of_recipient: permanent, ..not_sent(&error) }
            }),
            None => Err(unknown("the server did not respond")),
        }
    }
}

/// Returns `None` on a timeout. The SMTP conversation continues in the background, so that no half-used connection
/// returns to the pool.
async fn within<T: Send + 'static>(bound: Duration, task: impl Future<Output = T> + Send + 'static) -> Option<T> {
    tokio::time::timeout(bound, tokio::spawn(task)).await.ok()?.ok()
}

/// Returns the TLS mode that the address requires, with one more trusted certificate.
fn trusting(url: &str, root: &[u8]) -> Result<Tls, lettre::transport::smtp::Error> {
    let host = Url::parse(url).ok().and_then(|url| Some(url.host_str()?.to_owned())).unwrap_or_default();
    let parameters = TlsParameters::builder(host).add_root_certificate(Certificate::from_pem(root)?).build()?;
    Ok(if url.starts_with("smtps:") { Tls::Wrapper(parameters) } else { Tls::Required(parameters) })
}

/// Makes an `smtp` address require STARTTLS, unless it already sets a mode or names this machine.
fn with_tls(url: &str) -> String {
    // The library parses the address in the same way.
    let Ok(mut parsed) = Url::parse(url) else { return url.to_owned() };
    let says = parsed.query_pairs().any(|(name, _)| name == "tls");
    if parsed.scheme() == "smtp" && !says && !parsed.host_str().is_some_and(is_loopback) {
        parsed.query_pairs_mut().append_pair("tls", "required");
    }
    parsed.into()
}

fn envelope(mail: &RawMail) -> Option<Envelope> {
    let to: Address = mail.to.parse().ok()?;
    Envelope::new(Some(mail.from.parse().ok()?), vec![to]).ok()
}

fn refused(reason: &str) -> NotSent {
    NotSent { unknown: false, permanent: false, of_recipient: false, reason: reason.to_owned() }
}

fn unknown(reason: &str) -> NotSent {
    NotSent { unknown: true, permanent: false, of_recipient: false, reason: reason.to_owned() }
}

/// Includes only the codes of server responses, because the texts may contain addresses.
fn not_sent(error: &lettre::transport::smtp::Error) -> NotSent {
    match error.status() {
        Some(code) => refused(&format!("refused with {code}")),
        None if error.is_client() || error.is_tls() || is_connecting(error) => refused(NO_CONNECTION),
        None => unknown("the connection failed"),
    }
}

/// Whether the error occurred before the connection was established.
fn is_connecting(error: &lettre::transport::smtp::Error) -> bool {
    error.to_string().starts_with("Connection error")
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// How the test server fails instead of responding.
    #[derive(Clone, Copy, Debug)]
    enum Failure {
        Closes,
        SaysNothing,
    }

    /// An SMTP server that fails at a command, at `GREETING`, or at `.`, the end of the email.
    async fn converse(stream: TcpStream, fails_at: &str, failure: Failure) {
        let mut stream = BufReader::new(stream);
        let (mut line, mut in_mail) = ("GREETING".to_owned(), false);
        loop {
            let command = line.split_whitespace().next().unwrap_or_default().to_owned();
            if command == fails_at {
                match failure {
                    Failure::Closes => return,
                    Failure::SaysNothing => std::future::pending().await,
                }
            }
            in_mail = command == "DATA" || (in_mail && command != ".");
            let answer = match command.as_str() {
                "GREETING" => "220 here\r\n",
                "DATA" => "354 go on\r\n",
                _ if in_mail => "",
                _ => "250 OK\r\n",
            };
            stream.write_all(answer.as_bytes()).await.unwrap();
            line.clear();
            if stream.read_line(&mut line).await.unwrap_or_default() == 0 {
                return;
            }
        }
    }

    const SHORT: Duration = Duration::from_secs(1);

    /// Returns a client of a server that fails at this command in every conversation.
    async fn sender(fails_at: &'static str, failure: Failure, bounds: Bounds) -> Smtp {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("smtp://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, fails_at, failure));
            }
        });
        let Ok(Mailer::Smtp(smtp)) = Mailer::smtp(&Secret::from(url), None) else { panic!("not by SMTP") };
        Smtp { bounds, ..smtp }
    }

    fn mail() -> RawMail {
        RawMail {
            from: "comments@example.org".to_owned(),
            to: "ada@example.org".to_owned(),
            raw: b"Subject: Hello\r\n\r\nAda\r\n".to_vec(),
            recipient: "u7".to_owned(),
        }
    }

    #[tokio::test]
    async fn a_server_that_fails_before_the_message_has_not_accepted_it() {
        for fails_at in ["GREETING", "EHLO", "NOOP"] {
            for failure in [Failure::Closes, Failure::SaysNothing] {
                let bounds = Bounds { connecting: SHORT, ..BOUNDS };
                let error = sender(fails_at, failure, bounds).await.send(&mail()).await.unwrap_err();
                assert!(!error.unknown, "{failure:?} at {fails_at}: {error}");
            }
        }
    }

    #[tokio::test]
    async fn a_server_that_fails_after_the_message_may_have_accepted_it() {
        for failure in [Failure::Closes, Failure::SaysNothing] {
            let smtp = sender(".", failure, Bounds { sending: SHORT, ..BOUNDS }).await;
            for attempt in 1..=2 {
                let error = smtp.send(&mail()).await.unwrap_err();
                assert!(error.unknown, "{failure:?}, attempt {attempt}: {error}");
            }
        }
        sender("nothing", Failure::Closes, BOUNDS).await.send(&mail()).await.unwrap();
    }

    #[test]
    fn a_remote_mail_server_is_never_used_without_tls() {
        for (url, expected) in [
            ("smtp://user:pass@mail.example.org:587", "smtp://user:pass@mail.example.org:587?tls=required"),
            ("smtp://mail.example.org/name?x=1", "smtp://mail.example.org/name?x=1&tls=required"),
            ("smtp://user:127.0.0.1@mail.example.org", "smtp://user:127.0.0.1@mail.example.org?tls=required"),
            ("smtp://user:tls=none@mail.example.org", "smtp://user:tls%3Dnone@mail.example.org?tls=required"),
            ("smtp://mail.example.org?notls=1", "smtp://mail.example.org?notls=1&tls=required"),
            ("smtps://user:pass@mail.example.org", "smtps://user:pass@mail.example.org"),
            ("smtp://127.0.0.1:1025@mail.example.org", "smtp://127.0.0.1:1025@mail.example.org?tls=required"),
            ("smtp://user:p^w@mail.example.org?x=1", "smtp://user:p%5Ew@mail.example.org?x=1&tls=required"),
            ("smtp://user:pä{w@mail.example.org", "smtp://user:p%C3%A4%7Bw@mail.example.org?tls=required"),
            ("smtp://user:p^w@127.0.0.1:1025", "smtp://user:p%5Ew@127.0.0.1:1025"),
            ("smtp://127.0.0.1:1025", "smtp://127.0.0.1:1025"),
            ("smtp://localhost:1025?tls=required", "smtp://localhost:1025?tls=required"),
        ] {
            assert_eq!(with_tls(url), expected);
        }
    }
}
