//! The proxy outside: takes `CONNECT` and plain requests for hosts that the rules admit, and says no to the rest.
//!
//! Reads the first head of a connection and nothing after it: what follows goes to the host that was judged, and to no other.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::rules::{Rules, Verdict, is_near, split_port};

const HEAD_BYTES: usize = 64 << 10;
const HEAD_WITHIN: Duration = Duration::from_secs(30);
const CONNECT_WITHIN: Duration = Duration::from_secs(30);
/// Connections of one run at once.
const MOST_CONNECTIONS: usize = 512;
/// Refused hosts that are told of.
const MOST_NOTES: usize = 100;

/// Listens for one run, and ends with it.
#[derive(Debug)]
pub(crate) struct Proxy {
    socket: PathBuf,
    /// Hosts that were refused, each once.
    pub(crate) refused: Option<mpsc::UnboundedReceiver<String>>,
    _listening: AbortOnDropHandle<()>,
    _folder: TempDir,
}

impl Proxy {
    pub(crate) fn start(rules: Rules) -> io::Result<Self> {
        // The system's folder for such files: a socket's path must be short.
        let folder = tempfile::Builder::new().prefix("giga-net-").tempdir()?;
        let socket = folder.path().join("proxy");
        let listener = UnixListener::bind(&socket)?;
        let (notes, refused) = mpsc::unbounded_channel();
        let gate = Arc::new(Gate { rules, notes, told: Mutex::default() });
        let listening = AbortOnDropHandle::new(tokio::spawn(listen(listener, gate)));
        Ok(Self { socket, refused: Some(refused), _listening: listening, _folder: folder })
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }
}

async fn listen(listener: UnixListener, gate: Arc<Gate>) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let gate = gate.clone();
        connections.spawn(async move {
            // Whoever is cut off inside sees it by itself.
            let _ = gate.serve(client).await;
            drop(place);
        });
        while connections.try_join_next().is_some() {}
    }
}

struct Gate {
    rules: Rules,
    notes: mpsc::UnboundedSender<String>,
    told: Mutex<BTreeSet<String>>,
}

impl Gate {
    async fn serve(&self, mut client: UnixStream) -> io::Result<()> {
        let Ok(read) = tokio::time::timeout(HEAD_WITHIN, read_head(&mut client)).await else { return Ok(()) };
        let (head, rest) = read?;
        let Some(request) = Request::parse(&head) else {
            return answer(&mut client, "400 Bad Request", "this is not a request for a proxy").await;
        };
        let (host, port) = (request.host.as_str(), request.port);
        let verdict = self.rules.judge(host, port);
        if verdict == Verdict::Refused {
            return self.refuse(&mut client, host, port).await;
        }
        let mut server = match connect(host, port, verdict).await {
            Ok(server) => server,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return self.refuse(&mut client, host, port).await;
            }
            Err(error) => return answer(&mut client, "502 Bad Gateway", &error.to_string()).await,
        };
        match request.forwarded {
            None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
            Some(head) => server.write_all(head.as_bytes()).await?,
        }
        server.write_all(&rest).await?;
        tokio::io::copy_bidirectional(&mut client, &mut server).await.map(drop)
    }

    async fn refuse(&self, client: &mut UnixStream, host: &str, port: u16) -> io::Result<()> {
        let place: String = format!("{host}:{port}").chars().filter(|c| !c.is_control()).take(300).collect();
        let is_new = {
            let mut told = self.told.lock();
            told.len() < MOST_NOTES && told.insert(place.clone())
        };
        if is_new {
            // Nobody listens once the run is over.
            let _ = self.notes.send(place.clone());
        }
        answer(client, "403 Forbidden", &format!("{place} is not on this factory's list of hosts")).await
    }
}

async fn connect(host: &str, port: u16, verdict: Verdict) -> io::Result<TcpStream> {
    let attempt = async {
        let found: Vec<SocketAddr> = tokio::net::lookup_host((host, port)).await?.collect();
        let allowed: Vec<SocketAddr> =
            found.into_iter().filter(|found| verdict == Verdict::Anywhere || !is_near(found.ip())).collect();
        if allowed.is_empty() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        TcpStream::connect(allowed.as_slice()).await
    };
    match tokio::time::timeout(CONNECT_WITHIN, attempt).await {
        Ok(connected) => connected,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

async fn answer(client: &mut UnixStream, status: &str, text: &str) -> io::Result<()> {
    let length = text.len() + 1;
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n");
    client.write_all(format!("{head}Connection: close\r\n\r\n{text}\n").as_bytes()).await
}

/// The head, and what was read after it.
async fn read_head(client: &mut UnixStream) -> io::Result<(String, Vec<u8>)> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(end + 4);
            let head = String::from_utf8(read).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            return Ok((head, rest));
        }
        if read.len() > HEAD_BYTES || client.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

struct Request {
    host: String,
    port: u16,
    /// The head as the host is to see it; none for a tunnel.
    forwarded: Option<String>,
}

impl Request {
    fn parse(head: &str) -> Option<Self> {
        let (line, headers) = head.split_once("\r\n")?;
        let mut words = line.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") {
            return None;
        }
        if method == "CONNECT" {
            let (host, port) = split_port(target)?;
            return Some(Self { host, port: port?, forwarded: None });
        }
        let rest = target.strip_prefix("http://")?;
        let start = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(start);
        let (host, port) =
            split_port(authority).filter(|(host, _)| !host.is_empty() && !host.contains('@'))?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        // One request for one connection, and to the host that was judged.
        let mut forwarded =
            format!("{method} {slash}{path} {version}\r\nHost: {authority}\r\nConnection: close\r\n");
        for header in headers.split("\r\n").filter(|header| !header.is_empty()) {
            let name = header.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
            if !matches!(name.as_str(), "host" | "connection" | "keep-alive") && !name.starts_with("proxy-") {
                forwarded.push_str(header);
                forwarded.push_str("\r\n");
            }
        }
        forwarded.push_str("\r\n");
        Some(Self { host, port: port.unwrap_or(80), forwarded: Some(forwarded) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_a_proxy() {
        let tunnel = Request::parse("CONNECT Example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!((tunnel.host.as_str(), tunnel.port, tunnel.forwarded), ("example.com", 443, None));
        let plain = "GET http://example.com:8080/a?b HTTP/1.1\r\nHost: evil\r\nProxy-Authorization: x\r\nAccept: */*\r\n\r\n";
        let plain = Request::parse(plain).unwrap();
        assert_eq!((plain.host.as_str(), plain.port), ("example.com", 8080));
        let forwarded =
            "GET /a?b HTTP/1.1\r\nHost: example.com:8080\r\nConnection: close\r\nAccept: */*\r\n\r\n";
        assert_eq!(plain.forwarded.unwrap(), forwarded);
        for wrong in [
            "GET / HTTP/1.1\r\n\r\n",
            "CONNECT example.com HTTP/1.1\r\n\r\n",
            "GET ftp://x/ HTTP/1.1\r\n\r\n",
            "x",
        ] {
            assert!(Request::parse(wrong).is_none(), "{wrong:?}");
        }
    }
}
