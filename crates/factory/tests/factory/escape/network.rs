//! Where a job may connect to: with a closed network, to the coordinator and to what is on the list.

use std::net::SocketAddr;

use giga_api::wire::Stage;
use giga_factory::sandbox::SandboxMode;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::agent::{User, Victim};
use crate::agent::world::World;

/// A server of the host's that greets whoever comes, as a database or a cloud's metadata would.
async fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nwelcome\n";
            let _ = client.write_all(answer).await;
        }
    });
    address
}

/// Straight, past any proxy; through the proxy; and through the proxy as a tunnel.
fn script(server: SocketAddr) -> String {
    format!(
        "for way in '--noproxy *' '' '--proxytunnel'; do\n\
         if curl -s -m 10 $way http://{server}/ | grep -q welcome; then echo \"reached the host: $way.\"; fi\n\
         done\n\
         if curl -s -m 10 -o /dev/null http://169.254.169.254/; then echo 'reached the metadata'; fi\n\
         if curl -sf -m 10 \"$GIGA_URL/healthz\" > /dev/null; then echo 'reached the coordinator'; fi\n\
         echo tried them all"
    )
}

async fn log(network: &str, hosts: &[String], server: SocketAddr, mode: SandboxMode, user: User) -> String {
    let world = World::start().await;
    let settings = json!({"network": network, "hosts": hosts});
    let _victim = Victim::start(&world, user, mode, settings);
    let job = world.submit("caller", "ship: auto", &script(server)).await;
    world.until_stage(&job, Stage::Shipped).await;
    let log = world.log(&job, None).await;
    assert!(log.contains("tried them all"), "{log}");
    log
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_network_a_job_reaches_the_coordinator_and_nobody_else() {
    let server = server().await;
    for user in User::all() {
        let log = log("none", &[], server, SandboxMode::Require, *user).await;
        assert!(!log.contains("reached the host"), "as {user:?}: {log}");
        assert!(log.contains("reached the coordinator"), "as {user:?}: {log}");
        assert!(log.contains(&format!("network: {server} was refused")), "as {user:?}: {log}");
        assert!(log.contains("network: 169.254.169.254:80 was refused"), "as {user:?}: {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_list_a_job_reaches_what_is_on_it_through_the_proxy() {
    let (listed, other) = (server().await, server().await);
    let hosts = [listed.to_string()];
    let through = log("list", &hosts, listed, SandboxMode::Require, User::This).await;
    assert!(!through.contains("reached the host: --noproxy"), "{through}");
    assert!(through.contains("reached the host: ."), "{through}");
    assert!(through.contains("reached the host: --proxytunnel."), "{through}");
    let refused = log("list", &hosts, other, SandboxMode::Require, User::This).await;
    assert!(!refused.contains("reached the host"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_an_open_network_a_job_reaches_the_host() {
    let server = server().await;
    let log = log("open", &[], server, SandboxMode::Require, User::This).await;
    assert!(log.contains("reached the host"), "{log}");
}
