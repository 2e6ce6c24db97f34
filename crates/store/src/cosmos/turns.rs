//! Who is slower gets a turn too.
//!
//! Whoever has just committed knows the head already and needs one call for the next commit; whoever lost needs three. Under
//! a load without a pause the first would win for ever. So a loser leaves word, and a winner looks for it now and then.

use std::time::Duration;

use super::documents::{LOG, WAITING, Waiting};
use super::service::Found;
use super::{Link, Result, Shared};

/// Losing so often in a row is more than bad luck.
const PATIENT: u32 = 3;
/// A winner looks after so many commits in a row: one request unit.
const LOOKS_EVERY: u64 = 16;
/// Word from so many commits ago is old: whoever left it got through.
const OLD: u64 = 64;
/// How long a winner lets others go first.
const PAUSE: Duration = Duration::from_millis(5);
const PAUSES: u32 = 10;

impl Shared {
    pub(super) async fn ask_for_a_turn(&self, link: &Link, lost: u32) -> Result<()> {
        if !lost.is_multiple_of(PATIENT) {
            return Ok(());
        }
        let (id, pk) = (WAITING.to_owned(), LOG.to_owned());
        let word = Waiting { id, pk, writer: self.writer, last: link.head.last };
        self.service.put(LOG, WAITING, &word).await
    }

    /// Waits until somebody else has committed, where somebody waits.
    pub(super) async fn give_way(&self, link: &mut Link) -> Result<()> {
        if link.streak < LOOKS_EVERY {
            return Ok(());
        }
        link.streak = 0;
        let Found::Document(word, _) = self.service.read::<Waiting>(LOG, WAITING, None).await? else {
            return Ok(());
        };
        if word.writer == self.writer || word.last + OLD < link.head.last {
            return Ok(());
        }
        for _ in 0..PAUSES {
            tokio::time::sleep(PAUSE).await;
            if self.look(link).await? {
                break;
            }
        }
        Ok(())
    }
}
