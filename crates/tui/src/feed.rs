//! One connection tells of everything that happens. When it is lost, the screen says so at once, until it is back.

use std::time::Duration;

use giga_api::client::{Client, Signal};
use tokio::sync::mpsc::Sender;

use crate::data::{Inbox, describe};
use crate::msg::Msg;

/// Between tries after the client itself has given up.
const AGAIN: Duration = Duration::from_secs(3);

/// Ends when nobody listens any more.
pub(crate) async fn follow(client: Client, out: Sender<Inbox>) {
    while once(&client, &out).await {
        tokio::time::sleep(AGAIN).await;
    }
}

/// From the head of the feed until it ends; whether anybody still listens.
async fn once(client: &Client, out: &Sender<Inbox>) -> bool {
    let tell = async |msg: Msg| out.send(Inbox::Msg(msg)).await.is_ok();
    // From the head: what is on the screen is asked for anew when it opens, so nothing falls between.
    let head = match client.metrics().await {
        Ok(metrics) => metrics.feed_head,
        Err(error) => return tell(Msg::Lost(describe(&error))).await,
    };
    let mut feed = client.follow_fleet(Some(head));
    if !tell(Msg::Open).await {
        return false;
    }
    loop {
        let (msg, over) = match feed.next().await {
            Ok(Signal::Event(event)) => (Msg::News(Box::new(event.value)), false),
            Ok(Signal::Back) => (Msg::Open, false),
            Ok(Signal::Lost(error)) => (Msg::Lost(describe(&error)), false),
            Err(error) => (Msg::Lost(describe(&error)), true),
        };
        let heard = tell(msg).await;
        if over || !heard {
            return heard;
        }
    }
}
