//! The way out of an empty network, inside: a port on loopback that leads to the proxy's socket and nowhere else.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::{TcpListener, UnixStream};

/// What programs look at to find a proxy.
pub(in crate::sandbox) const VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
/// What would lead past it.
pub(in crate::sandbox) const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Forwards on a thread of its own for as long as the process lives. Answers where it listens.
pub(in crate::sandbox) fn start(socket: PathBuf) -> io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("forwarder".to_owned()).spawn(move || {
        runtime.block_on(async move {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            loop {
                let Ok((mut program, _)) = listener.accept().await else {
                    // Too many are open; some will end.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                let socket = socket.clone();
                tokio::spawn(async move {
                    // Whoever asked sees a connection that ends.
                    if let Ok(mut proxy) = UnixStream::connect(socket).await {
                        let _ = tokio::io::copy_bidirectional(&mut program, &mut proxy).await;
                    }
                });
            }
        });
    })?;
    Ok(address)
}
