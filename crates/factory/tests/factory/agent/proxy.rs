//! Something between factories and the coordinator, as there often is: it can let requests through and streams not, send
//! streams elsewhere, lose the answers to claims, or be gone altogether.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Where connections go; `None`: nowhere.
#[derive(Debug, Clone, Copy)]
struct Routes {
    requests: Option<SocketAddr>,
    streams: Option<SocketAddr>,
    loses_claims: bool,
}

struct State {
    routes: Routes,
    /// Cuts what was connected by the routes of before.
    cut: CancellationToken,
}

pub(crate) struct Proxy {
    pub(crate) url: String,
    coordinator: SocketAddr,
    state: Arc<Mutex<State>>,
    _ends: DropGuard,
}

impl Proxy {
    /// Before the coordinator at this address.
    pub(crate) async fn of(url: &str) -> Self {
        let coordinator: SocketAddr = url.strip_prefix("http://").unwrap().parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = Routes { requests: Some(coordinator), streams: Some(coordinator), loses_claims: false };
        let state = Arc::new(Mutex::new(State { routes, cut: CancellationToken::new() }));
        let end = CancellationToken::new();
        let (accepting, ended) = (accept(listener, state.clone()), end.clone());
        tokio::spawn(async move { ended.run_until_cancelled(accepting).await });
        Self { url, coordinator, state, _ends: end.drop_guard() }
    }

    pub(crate) fn everything_through(&self) {
        self.route(Some(self.coordinator), Some(self.coordinator));
    }

    pub(crate) fn no_streams(&self) {
        self.route(Some(self.coordinator), None);
    }

    pub(crate) fn streams_to(&self, other: SocketAddr) {
        self.route(Some(self.coordinator), Some(other));
    }

    pub(crate) fn gone(&self) {
        self.route(None, None);
    }

    /// Claims arrive, and their answers do not.
    pub(crate) fn no_answers_to_claims(&self) {
        let (requests, streams) = (Some(self.coordinator), Some(self.coordinator));
        self.take(Routes { requests, streams, loses_claims: true });
    }

    fn route(&self, requests: Option<SocketAddr>, streams: Option<SocketAddr>) {
        self.take(Routes { requests, streams, loses_claims: false });
    }

    fn take(&self, routes: Routes) {
        let mut state = self.state.lock();
        state.routes = routes;
        std::mem::take(&mut state.cut).cancel();
    }
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>) {
    while let Ok((client, _)) = listener.accept().await {
        let (routes, cut) = {
            let state = state.lock();
            (state.routes, state.cut.clone())
        };
        tokio::spawn(async move { cut.run_until_cancelled(carry(client, routes)).await });
    }
}

async fn carry(mut client: TcpStream, routes: Routes) -> Option<()> {
    // How every HTTP/2 connection begins, and no request of HTTP/1.1.
    let mut first = [0; 3];
    while client.peek(&mut first).await.ok().filter(|count| *count > 0)? < first.len() {}
    let streams = &first == b"PRI";
    let mut server =
        TcpStream::connect(if streams { routes.streams } else { routes.requests }?).await.ok()?;
    if routes.loses_claims && !streams {
        return until_a_claim_is_answered(client, server).await;
    }
    tokio::io::copy_bidirectional(&mut client, &mut server).await.ok()?;
    Some(())
}

/// The connection breaks when the answer should come.
async fn until_a_claim_is_answered(mut client: TcpStream, mut server: TcpStream) -> Option<()> {
    const CLAIM: &[u8] = b"POST /api/fleet/claim ";
    let (mut up, mut down) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    let mut claimed = false;
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let bytes = &up[..read.ok().filter(|count| *count > 0)?];
                claimed |= bytes.windows(CLAIM.len()).any(|window| window == CLAIM);
                server.write_all(bytes).await.ok()?;
            }
            read = server.read(&mut down) => {
                let bytes = &down[..read.ok().filter(|count| *count > 0 && !claimed)?];
                client.write_all(bytes).await.ok()?;
            }
        }
    }
}
