//! Somebody who follows the feed in small pages, from one coordinator or another, always from the last position seen.

use std::sync::Arc;

use giga_coordinator::Error;
use giga_domain::FeedPos;

use super::nap;
use crate::prng::Prng;
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Reader {
    pub world: Arc<World>,
    pub prng: Prng,
}

impl Reader {
    pub(crate) async fn run(mut self) {
        let mut cursor = FeedPos::ZERO;
        loop {
            let limit = self.prng.between(1, 40) as usize;
            let page = self
                .world
                .call(&mut self.prng, |one| async move {
                    one.reads().feed(cursor, limit).await.map_err(Error::from)
                })
                .await;
            match page {
                Ok(page) if !page.is_empty() => {
                    cursor = page.last().map_or(cursor, |event| event.pos);
                    self.world.history.add_read(page);
                }
                _ => nap(&mut self.prng, 50, 500).await,
            }
        }
    }
}
