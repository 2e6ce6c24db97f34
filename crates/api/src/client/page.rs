//! The page that a coordinator serves beside its API.

use std::time::Duration;

use super::{Client, ClientError};
use crate::PAGE_HEADER;

const TIMEOUT: Duration = Duration::from_secs(10);

impl Client {
    /// Is there a page at this address? Asked without a token, as a browser would.
    pub async fn has_page(&self) -> Result<bool, ClientError> {
        let answer = self.http.head(self.base.clone()).timeout(TIMEOUT).send().await;
        let answer = answer.map_err(|source| ClientError::unreachable(&self.base, source))?;
        Ok(answer.headers().get(PAGE_HEADER).is_some_and(|value| value == "built"))
    }
}
