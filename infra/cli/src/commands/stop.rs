//! The signals that a user or a supervisor sends to stop the process.

use std::io;

/// Resolves on Ctrl-C or SIGTERM. The handlers are installed when this returns. A signal before the future is polled is
/// therefore not lost and doesn't kill the process.
#[cfg(unix)]
pub(super) fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

#[cfg(windows)]
pub(super) fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupt.recv().await;
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::env;
    use std::process::Command;

    use super::stop_signal;

    #[tokio::test]
    async fn a_signal_before_the_first_poll_is_not_lost() {
        // Signal handlers belong to the process, so this test runs alone in a separate one.
        const ALONE: &str = "STOP_SIGNAL_TEST";
        if env::var_os(ALONE).is_none() {
            let test = "commands::stop::tests::a_signal_before_the_first_poll_is_not_lost";
            let mut alone = Command::new(env::current_exe().unwrap());
            assert!(alone.args(["--exact", test]).env(ALONE, "1").output().unwrap().status.success());
            return;
        }
        let stopped = stop_signal().unwrap();
        let kill = Command::new("kill").arg(std::process::id().to_string()).status().unwrap();
        assert!(kill.success());
        stopped.await;
    }
}
