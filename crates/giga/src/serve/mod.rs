//! The composition root of the coordinator: real clock, real randomness, a store, the server.
//!
//! Nothing is decided here about jobs. The order matters: what can fail without a trace comes first, and the ready
//! line comes last, when everything that it promises is true.

mod data;
mod local;
mod place;
mod pools;
mod room;
mod secret_keys;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use giga_broker::{Access, Embedded};
use giga_coordinator::{Coordinator, Options, Ports};
use giga_domain::FeedPos;
use giga_ports::store::{ShareKey, StoreReads};
use giga_ports::{PoolDrivers, Randomness as _, SecretKeys, StoreError};
use giga_server::{AcmeOptions, Listener, ServerOptions, SignIn, Tls};
use giga_store::Tuning;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::config::{Setting, Settings, SignInSettings, Tls as TlsSource, mask_url};
use crate::exit::CliError;
use crate::output::{announce, progress, say, span, warn};
use crate::signals;
use crate::steady_clock::{Record, SteadyClock};
use crate::system::{SystemClock, SystemRandomness};
use data::DataFolder;
use local::{LocalFactories, Plan};
use place::SharedPlace;

pub(crate) use data::AdminToken;
pub(crate) use secret_keys::in_folder as secret_keys_in;

/// As a service: logs, and the ready line.
pub(crate) async fn serve(settings: &Settings, adopt_artifacts: bool) -> Result<(), CliError> {
    let (store, broker) = (settings.store().value, settings.broker().value);
    run(settings, &Stores { store: &store, broker: &broker, adopt_artifacts }, None).await
}

/// For people: the embedded store, and a few words on what to do next.
pub(crate) async fn up(settings: &Settings) -> Result<(), CliError> {
    let embedded = settings.embedded_store();
    let set = settings.store();
    if set.value != embedded {
        say(&format!("`giga up` uses the embedded store; to use {}, run `giga serve`", mask_url(&set.value)));
    }
    let stores = Stores { store: &embedded, broker: Settings::EMBEDDED_BROKER, adopt_artifacts: false };
    run(settings, &stores, Some(Plan::new(settings).await?)).await
}

/// What a coordinator keeps everything in.
struct Stores<'a> {
    store: &'a str,
    broker: &'a str,
    /// The place for artifacts is the one of the store, whatever was before.
    adopt_artifacts: bool,
}

struct Started<'a> {
    url: &'a str,
    folder: &'a DataFolder,
    token: AdminToken,
    settings: &'a Settings,
    plan: &'a Plan,
    has_page: bool,
}

/// With a plan, for people and with factories of its own.
async fn run(settings: &Settings, stores: &Stores<'_>, plan: Option<Plan>) -> Result<(), CliError> {
    let served = start_and_serve(settings, stores, plan).await;
    served.map_err(|error| room::explain(error, &settings.data().value))
}

async fn start_and_serve(
    settings: &Settings,
    stores: &Stores<'_>,
    plan: Option<Plan>,
) -> Result<(), CliError> {
    let Stores { store, broker, adopt_artifacts } = *stores;
    // From here on a signal ends in good order, however far the start got.
    let shutdown = CancellationToken::new();
    let factories = LocalFactories::none();
    signals::cancel_on_signal(shutdown.clone(), factories.clone().leave_at_once())?;

    let max_connections = connections_allowed(settings.max_connections()?)?;
    let wanted_tls = settings.tls()?;
    let sign_in = settings.sign_in()?;
    let folder = DataFolder::lock(settings.data().value)?;
    let (listener, address) = listen(settings.listen()).await?;
    let metrics = match settings.metrics_listen() {
        Some(wanted) => Some(listen(wanted).await?),
        None => None,
    };
    // Before anything is made: without it nobody would be served.
    let tls = tokio::select! {
        tls = certificate(wanted_tls, &folder, &listener) => tls?,
        () = shutdown.cancelled() => return Ok(()),
    };
    let place = settings.artifacts_in(folder.path());
    let keys = secret_keys::secret_keys(settings, store, folder.path());
    let access = settings.broker_access(broker)?;
    let drivers = pools::drivers(settings, folder.path())?;
    let wanted = Wanted { store, broker, access, place: &place, adopt_artifacts };
    let (coordinator, place) = tokio::select! {
        started = start(wanted, settings.outside()?, keys, drivers.clone()) => started?,
        () = shutdown.cancelled() => return Ok(()),
    };
    let token = folder.keep_admin_token(&coordinator).await?;
    let url = url_of(tls.as_ref(), reachable(address));
    folder.write_url(&url)?;
    drivers.listening_at(url.clone());
    if tls.is_none() && !address.ip().is_loopback() {
        warn(&format!(
            "{address} is reachable from other machines, and tokens travel unencrypted; use --tls-cert with --tls-key, or \
             --tls-acme, or put TLS in front"
        ));
    }
    if let Some((_, address)) = &metrics {
        progress(&format!("metrics at http://{}/metrics, without a token", reachable(*address)));
    }
    let listener = Listener::new(listener, tls).with_metrics(metrics.map(|(listener, _)| listener));
    let sign_in = sign_in.map(|set| {
        let SignInSettings { provider, grants, lifetime, public_url } = set;
        let public_url = public_url.unwrap_or_else(|| url.clone());
        Arc::new(SignIn { provider, grants, lifetime, public_url })
    });
    let options = ServerOptions { max_connections, sign_in, ..ServerOptions::default() };
    let has_page = options.page.is_some();
    if let Some(plan) = &plan {
        plan.enroll(&coordinator, folder.path()).await?;
        greet(&Started { url: &url, folder: &folder, token, settings, plan, has_page });
        factories.start(plan, folder.path(), &url);
    } else {
        let (command, does) = way_in(has_page);
        progress(&format!("`{command}` {does}"));
    }
    announce(&format!("ready {url}"))?;

    let served = tokio::select! {
        served = serve_until(shutdown, &factories, coordinator.clone(), listener, options) => {
            served.map_err(|error| CliError::failed(format!("the server stopped: {error}")))
        }
        () = folder.renew_admin_token(&coordinator) => Ok(()),
        moved = until_moved(place.as_ref()) => Err(moved),
    };
    coordinator.stop().await;
    folder.remove_url();
    served
}

/// Only where several coordinators can share the store.
async fn until_moved(place: Option<&SharedPlace>) -> CliError {
    match place {
        Some(place) => place.until_elsewhere().await,
        None => std::future::pending().await,
    }
}

/// The factories leave first: they need somebody to hand their jobs back to.
async fn serve_until(
    shutdown: CancellationToken,
    factories: &LocalFactories,
    coordinator: Arc<Coordinator>,
    listener: Listener,
    options: ServerOptions,
) -> std::io::Result<()> {
    let stop = CancellationToken::new();
    let server = giga_server::serve(coordinator, listener, options, stop.clone());
    tokio::pin!(server);
    let leaving = async {
        shutdown.cancelled().await;
        factories.leave().await;
    };
    tokio::select! {
        served = &mut server => {
            factories.leave().await;
            return served;
        }
        () = leaving => {}
    }
    stop.cancel();
    server.await
}

/// As many open files as the system lets a process have, and how many of them may be connections: the rest is for the
/// store, artifacts and logs, and for connections that were just let go.
fn connections_allowed(wanted: Option<usize>) -> Result<usize, CliError> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let files = getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| files as usize);
    let most = files / 4 * 3;
    match wanted {
        Some(wanted) if wanted > most => Err(CliError::Config(format!(
            "max-connections: {wanted} connections need {} open files, and this process may have {files}; raise that limit \
             (LimitNOFILE of systemd, `ulimit -Hn`), or allow at most {most} connections",
            wanted.div_ceil(3) * 4
        ))),
        Some(wanted) => Ok(wanted),
        None => Ok(most.min(ServerOptions::default().max_connections)),
    }
}

async fn listen(wanted: Setting<String>) -> Result<(TcpListener, SocketAddr), CliError> {
    let bound = async {
        let listener = TcpListener::bind(&wanted.value).await?;
        let address = listener.local_addr()?;
        Ok::<_, std::io::Error>((listener, address))
    };
    let (listener, address) = bound.await.map_err(|error| {
        let message = format!("cannot listen on {}: {error}", wanted.value);
        match error.kind() {
            std::io::ErrorKind::AddrInUse => CliError::failed_but(
                message,
                "a coordinator may be running already; `--listen 127.0.0.1:0` picks a free port",
            ),
            _ => CliError::failed_but(message, "use an address and a port, such as 127.0.0.1:7717"),
        }
    })?;
    Ok((listener, address))
}

/// What the coordinator proves itself with, if it does.
async fn certificate(
    wanted: Option<TlsSource>,
    folder: &DataFolder,
    listener: &TcpListener,
) -> Result<Option<Tls>, CliError> {
    match wanted {
        None => Ok(None),
        Some(TlsSource::Files { cert, key }) => {
            let tls = Tls::from_files(&cert, &key).map_err(|error| {
                CliError::failed_but(
                    format!("cannot serve TLS: {error}"),
                    "--tls-cert takes the certificate and what leads to its CA, --tls-key its private key, both as PEM",
                )
            })?;
            Ok(Some(tls))
        }
        Some(TlsSource::Acme { domain, directory }) => {
            let clock = Arc::new(SystemClock);
            progress(&format!("getting a certificate for {domain} from {directory}"));
            let options = AcmeOptions { domain, directory, folder: folder.path().join("acme"), clock };
            let tls = Tls::from_acme(options, listener).await.map_err(|error| {
                CliError::failed_but(
                    error.to_string(),
                    "the CA must reach this listener at port 443 of the domain (--listen 0.0.0.0:443, or a port that is \
                     forwarded to it); --tls-cert takes a certificate that you have",
                )
            })?;
            Ok(Some(tls))
        }
    }
}

/// By which this machine reaches it.
fn url_of(tls: Option<&Tls>, address: SocketAddr) -> String {
    match tls {
        None => format!("http://{address}"),
        Some(tls) => format!("https://{}:{}", tls.host(address.ip()), address.port()),
    }
}

/// "Everywhere" is no address to connect to; this machine is part of everywhere.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// What a coordinator is to be built on.
pub(crate) struct Wanted<'a> {
    pub(crate) store: &'a str,
    pub(crate) broker: &'a str,
    /// What it proves itself with to the broker.
    pub(crate) access: Access,
    /// For logs and artifacts.
    pub(crate) place: &'a str,
    pub(crate) adopt_artifacts: bool,
}

/// A coordinator, and its place for logs and artifacts where others have to have the same.
pub(crate) async fn start(
    wanted: Wanted<'_>,
    outside: giga_effects::Config,
    secret_keys: Arc<dyn SecretKeys>,
    pool_drivers: PoolDrivers,
) -> Result<(Arc<Coordinator>, Option<SharedPlace>), CliError> {
    let Wanted { store, broker, access, place, adopt_artifacts } = wanted;
    let (clock, random) = (Arc::new(SteadyClock::new()), Arc::new(SystemRandomness));
    let broker = if broker == Settings::EMBEDDED_BROKER {
        Arc::new(Embedded::with_clock(clock.clone()))
    } else {
        giga_broker::open_with(broker, access).await.map_err(|error| {
            let message = format!("cannot use the broker {}: {error}", mask_url(broker));
            CliError::failed_but(
                message,
                "--broker takes embedded:, postgres://USER@HOST/DB, nats://HOST or servicebus://HOST; a broker that is only unreachable is retried",
            )
        })?
    };
    // The world outside goes by its own clocks.
    let effects = giga_effects::HttpEffects::new(outside, Arc::new(SystemClock))
        .map_err(|error| CliError::Config(error.to_string()))?;
    let places = place::open(place).await?;
    let cannot_open = |error: StoreError| {
        let message = format!("cannot open the store {}: {error}", mask_url(store));
        if error.is_transient() {
            CliError::failed_but(
                message,
                "check that the database is running and that this machine and user may connect to it",
            )
        } else {
            CliError::failed(message)
        }
    };
    let stores = giga_store::open(store, clock.clone(), Tuning::default()).await.map_err(cannot_open)?;
    let shared_place = if Settings::is_shared(store) {
        Some(SharedPlace::settle(place, &places, stores.jobs.clone(), &*random, adopt_artifacts).await?)
    } else {
        None
    };
    let started = async {
        go_on_from_newest(&clock, stores.jobs.read()).await?;
        // Every coordinator of the store knows what any of them has written into a tracker.
        let key = ShareKey { name: "tracker-markers", fresh: random.bytes() };
        let marker_key = stores.jobs.share_key(key).await?;
        let ports = Ports {
            store: stores.jobs,
            topics: stores.topics,
            broker,
            clock,
            random,
            logs: places.logs,
            artifacts: places.artifacts,
            effects: Arc::new(effects.with_marker_key(marker_key)),
            secret_keys,
            pool_drivers,
        };
        Coordinator::start(ports, Options::default()).await
    };
    Ok((started.await.map_err(cannot_open)?, shared_place))
}

/// Time in a store does not go back when its coordinator is started again. With PostgreSQL the clock is the database's.
async fn go_on_from_newest(clock: &SteadyClock, store: &dyn StoreReads) -> Result<(), StoreError> {
    let head = store.feed_head().await?;
    let newest = store.feed(FeedPos(head.0.saturating_sub(1)), 1).await?;
    let Some(newest) = newest.last().map(|event| event.at) else { return Ok(()) };
    match clock.go_on_from(newest) {
        Record::Past => {}
        Record::Ahead(ahead) => warn(&format!(
            "the clock of this machine is {} behind the newest event in the store ({newest}); time goes on from there, a \
             little slower, until the clock has caught up",
            span(ahead)
        )),
        Record::Wrong(ahead) => warn(&format!(
            "the newest event in the store is {} ahead of the clock of this machine ({newest}): that event's time is taken for \
             wrong, and the clock for right. What a live factory holds gets right deadlines when it is renewed; what a dead one \
             holds is ended with `giga job cancel`. If it is the clock that is wrong, stop the coordinator and set the clock",
            span(ahead)
        )),
    }
    Ok(())
}

fn greet(started: &Started<'_>) {
    let Started { url, folder, token, settings, plan, has_page } = started;
    let token_note = match token {
        AdminToken::Kept => "",
        AdminToken::Written => " (new; only you can read it)",
    };
    let mut lines = vec![
        "\x1b[1mGigafactory is running.\x1b[0m".to_owned(),
        format!("  address  {url}"),
        format!("  data     {}", folder.path().display()),
        format!("  token    {}{token_note}", folder.token_path().display()),
    ];
    lines.extend(factory_lines(plan, settings));
    lines.extend([String::new(), "From another terminal:".to_owned()]);
    // Elsewhere than by default it has to be told where to look.
    if settings.data().origin != crate::config::Origin::Default {
        lines.push(format!("  \x1b[36mexport GIGA_DATA={}\x1b[0m", folder.path().display()));
    }
    lines.push("  \x1b[36mgiga job init hello.md && giga job submit hello.md\x1b[0m".to_owned());
    let (command, does) = way_in(*has_page);
    lines.push(format!("  \x1b[36m{command}\x1b[0m    {does}"));
    lines.push(String::new());
    lines.push("Ctrl-C stops it. Everything is kept.".to_owned());
    for line in lines {
        say(&line);
    }
}

/// How to look at it all: a command, and what it does. A page that is not there is not promised.
fn way_in(has_page: bool) -> (&'static str, &'static str) {
    if has_page {
        ("giga web", "prints the address of the web page, with your token in it")
    } else {
        ("giga top", "shows the fleet in the terminal; this giga was built without the web page")
    }
}

fn factory_lines(plan: &Plan, settings: &Settings) -> Vec<String> {
    let names = match plan.names() {
        [] => return vec!["  factory  none; `giga factory run` starts one".to_owned()],
        [one] => one.clone(),
        [first, second] => format!("{first} and {second}"),
        [first, .., last] => format!("{first} to {last}"),
    };
    let seats = settings.seats().map_or(0, |seats| seats.value);
    let jobs = if seats == 1 { "1 job".to_owned() } else { format!("{seats} jobs") };
    let each = if plan.names().len() == 1 { "at once" } else { "at once each" };
    let mut lines = vec![format!("  factory  {names}, {jobs} {each}")];
    if plan.repos().is_empty() {
        lines.push("  repos    none; offer the repositories of a folder with --repos DIR".to_owned());
    }
    lines.extend(plan.repos().iter().cloned());
    lines
}
