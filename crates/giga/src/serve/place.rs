//! Where logs and artifacts go: opened, tried, and the same for every coordinator of a database.
//!
//! A database remembers which place has its bytes. A coordinator whose place is another one would take in logs that
//! nobody finds elsewhere, and find none of the others': it does not start, and ends when the place moves under it.

use std::sync::Arc;
use std::time::Duration;

use giga_blobs::{PlaceId, Places};
use giga_domain::Actor;
use giga_ports::store::{RotateKey, ShareKey};
use giga_ports::{Randomness, Store, StoreError};

use crate::config::{Settings, mask_url};
use crate::exit::CliError;
use crate::output::progress;

/// The names of what the store remembers. A log or an artifact is in the place of now, and nowhere else.
const OF_NOW: &str = "artifacts-place";
const OF_BEFORE: &str = "artifacts-place-before";
const LOOK_EVERY: Duration = Duration::from_secs(20);

/// Opened and tried, so that what is wrong with it shows now and not with the first job.
pub(super) async fn open(place: &str) -> Result<Places, CliError> {
    let shown = mask_url(place);
    let opened = giga_blobs::open(place, &Settings::cloud_variables());
    let places = opened.map_err(|error| {
        CliError::failed_but(format!("cannot store artifacts in {shown}: {error}"), error.remedy)
    })?;
    places.check().await.map_err(|error| {
        CliError::failed_but(
            format!("cannot store artifacts in {shown}: {error}"),
            "check that it exists and that these credentials may write to it; `giga doctor` tests it",
        )
    })?;
    Ok(places)
}

/// The place of a coordinator that may have others beside it.
pub(crate) struct SharedPlace {
    shown: String,
    own: PlaceId,
    store: Arc<dyn Store>,
}

impl SharedPlace {
    /// With `adopt` the database's logs and artifacts are here from now on, wherever they were before.
    pub(super) async fn settle(
        place: &str,
        places: &Places,
        store: Arc<dyn Store>,
        random: &dyn Randomness,
        adopt: bool,
    ) -> Result<Self, CliError> {
        let shown = mask_url(place);
        let own = places.id(random.bytes()).await.map_err(|error| {
            CliError::failed(format!("cannot tell {shown} from other places for artifacts: {error}"))
        })?;
        let place = Self { shown, own, store };
        if adopt {
            let command = RotateKey {
                name: OF_NOW,
                previous: OF_BEFORE,
                fresh: own.0,
                older_than: Duration::ZERO,
                actor: Actor::system("serve"),
            };
            place.store.rotate_key(command).await.map_err(|error| unknown(&error))?;
        }
        let known = place.known().await.map_err(|error| unknown(&error))?;
        if known != own {
            return Err(place.elsewhere(known));
        }
        progress(&format!("logs and artifacts are in {}, place {own}", place.shown));
        Ok(place)
    }

    /// Ends when the database's bytes are somewhere else.
    pub(super) async fn until_elsewhere(&self) -> CliError {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            match self.known().await {
                Ok(known) if known != self.own => return self.elsewhere(known),
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "where logs and artifacts are could not be looked up"),
            }
        }
    }

    async fn known(&self) -> Result<PlaceId, StoreError> {
        let key = ShareKey { name: OF_NOW, fresh: self.own.0 };
        self.store.share_key(key).await.map(PlaceId)
    }

    fn elsewhere(&self, known: PlaceId) -> CliError {
        let Self { shown, own, .. } = self;
        CliError::failed_but(
            format!(
                "the logs and artifacts of this database are in place {known}, and {shown} is place {own}: what one \
                 coordinator takes in, the others would not find"
            ),
            "give every coordinator of the database the same --artifacts: a bucket, or a folder that all of them mount. If \
             everything was moved here, copy the file giga-place as well; if what is there may be left behind, start \
             once with --adopt-artifacts, with the other coordinators stopped",
        )
    }
}

fn unknown(error: &StoreError) -> CliError {
    CliError::failed(format!("cannot look up where the logs and artifacts of the database are: {error}"))
}
