//! Notifies a supervisor, such as systemd, of the service's state.

use std::env;
use std::io;

/// Sends the state to the supervisor's socket. Does nothing if `NOTIFY_SOCKET` isn't set.
#[cfg(unix)]
pub(super) fn notify(state: &str) -> io::Result<()> {
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    let Some(socket) = env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
    #[cfg(target_os = "linux")]
    if let Some(name) = socket.as_encoded_bytes().strip_prefix(b"@") {
        use std::os::linux::net::SocketAddrExt;
        return UnixDatagram::unbound()?
            .send_to_addr(state.as_bytes(), &SocketAddr::from_abstract_name(name)?)
            .map(drop);
    }
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &SocketAddr::from_pathname(socket)?).map(drop)
}

#[cfg(not(unix))]
pub(super) fn notify(_state: &str) -> io::Result<()> {
    Ok(())
}
