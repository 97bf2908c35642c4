//! A connection that is closed if its client is too slow.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// The timeout for the whole head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// The timeout between two requests, for a client that stops reading its response, and for a connection that waits to
/// be served.
pub(super) const IDLE: Duration = Duration::from_mins(1);

/// The phase of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace(Arc<AtomicU8>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing has arrived yet.
    New,
    Idle,
    Head,
    /// A request is being handled. Its body has separate timeouts.
    Busy,
}

impl Pace {
    pub(super) fn begin(&self) {
        self.set(Phase::Busy);
    }

    pub(super) fn end(&self) {
        self.set(Phase::Idle);
    }

    /// Whether no request is arriving or being handled.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.phase(), Phase::New | Phase::Idle)
    }

    fn set(&self, phase: Phase) {
        self.0.store(phase as u8, Ordering::Relaxed);
    }

    fn phase(&self) -> Phase {
        [Phase::New, Phase::Idle, Phase::Head, Phase::Busy][usize::from(self.0.load(Ordering::Relaxed))]
    }
}

pub(super) struct Paced<S> {
    stream: S,
    pace: Pace,
    /// The phase that `timer` was set for.
    timed: Phase,
    timer: Pin<Box<Sleep>>,
    /// The timeout that runs while the client reads nothing.
    writing: Option<Pin<Box<Sleep>>>,
}

impl<S> Paced<S> {
    pub(super) fn new(stream: S, pace: Pace) -> Self {
        Self { stream, pace, timed: Phase::New, timer: Box::pin(sleep(HEAD)), writing: None }
    }

    fn time(&mut self, phase: Phase, patience: Duration) {
        self.timed = phase;
        self.timer.as_mut().reset(Instant::now() + patience);
    }

    fn wait_to_write<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.writing = None;
            return written;
        }
        let writing = self.writing.get_or_insert_with(|| Box::pin(sleep(IDLE)));
        ready!(writing.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let phase = self.pace.phase();
        if phase != self.timed {
            self.time(phase, if phase == Phase::Idle { IDLE } else { HEAD });
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        match read {
            Poll::Ready(_) => {
                if buffer.filled().len() > before && self.pace.is_idle() {
                    self.pace.set(Phase::Head);
                    self.time(Phase::Head, HEAD);
                }
                read
            }
            Poll::Pending if phase == Phase::Busy => Poll::Pending,
            Poll::Pending => self.timer.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into())),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wait_to_write(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.wait_to_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.wait_to_write(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    fn connection() -> (DuplexStream, Paced<DuplexStream>, Pace) {
        let (client, server) = duplex(8);
        let pace = Pace::default();
        (client, Paced::new(server, pace.clone()), pace)
    }

    /// The number of seconds until a read times out.
    async fn patience(server: &mut Paced<DuplexStream>) -> u64 {
        let start = Instant::now();
        assert_eq!(server.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        start.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_head_may_take_ten_seconds_and_a_pause_between_requests_sixty() {
        let (_client, mut server, _) = connection();
        assert_eq!(patience(&mut server).await, 10);

        let (mut client, mut server, pace) = connection();
        client.write_u8(1).await.unwrap();
        server.read_u8().await.unwrap();
        assert!(!pace.is_idle());
        tokio::time::advance(Duration::from_secs(4)).await;
        client.write_u8(1).await.unwrap();
        server.read_u8().await.unwrap();
        assert_eq!(patience(&mut server).await, 6, "another byte gives no more time");

        let (mut client, mut server, pace) = connection();
        pace.begin();
        assert!(tokio::time::timeout(Duration::from_hours(1), server.read_u8()).await.is_err());
        pace.end();
        assert_eq!(patience(&mut server).await, 60);
        pace.begin();
        client.write_u8(1).await.unwrap();
        server.read_u8().await.unwrap();
        pace.end();
        client.write_u8(1).await.unwrap();
        server.read_u8().await.unwrap();
        assert_eq!(patience(&mut server).await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_for_a_minute_is_disconnected() {
        let (mut client, mut server, pace) = connection();
        pace.begin();
        server.write_all(&[0; 8]).await.unwrap();
        let start = Instant::now();
        let taken = async {
            tokio::time::sleep(Duration::from_secs(50)).await;
            client.read_u8().await.unwrap();
            client
        };
        let (written, _client) = tokio::join!(server.write_all(&[0; 8]), taken);
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), 110);
    }
}
