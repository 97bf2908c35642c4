//! The signals by which a user or a supervisor ends the process.

use std::io;

/// Resolves at Ctrl-C or SIGTERM. The handlers are installed when this returns: a signal that arrives before the future
/// is polled is not lost and does not kill the process.
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

/// Resolves at Ctrl-C.
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
        // Handlers of signals are the process's, so this test runs alone in another one.
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
