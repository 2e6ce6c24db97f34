//! A store that counts what it is asked, by name, and can be told to fail.

use std::collections::BTreeMap;
use std::sync::Arc;

use giga_ports::{Intercept, InterceptReads, Store, StoreError, StoreReads};
use parking_lot::Mutex;

pub(crate) struct Counted {
    inner: Arc<dyn Store>,
    asked: Mutex<BTreeMap<&'static str, u32>>,
    to_fail: Mutex<Vec<&'static str>>,
}

impl Counted {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, asked: Mutex::default(), to_fail: Mutex::default() }
    }

    /// The next call of that name is answered as if the database were away.
    #[allow(dead_code, reason = "not every test binary breaks things")]
    pub(crate) fn fail_next(&self, name: &'static str) {
        self.to_fail.lock().push(name);
    }

    #[allow(dead_code, reason = "not every test binary breaks things")]
    pub(crate) fn is_to_fail(&self, name: &str) -> bool {
        self.to_fail.lock().contains(&name)
    }

    fn is_failing(&self, name: &str) -> bool {
        let mut to_fail = self.to_fail.lock();
        let place = to_fail.iter().position(|known| *known == name);
        place.map(|place| to_fail.remove(place)).is_some()
    }

    /// Since the last time.
    pub(crate) fn taken(&self) -> BTreeMap<&'static str, u32> {
        std::mem::take(&mut *self.asked.lock())
    }
}

impl InterceptReads for Counted {
    fn inner_reads(&self) -> &dyn StoreReads {
        self.inner.read()
    }

    async fn around<T: Send>(
        &self,
        call: &'static str,
        answer: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        *self.asked.lock().entry(call).or_default() += 1;
        if self.is_failing(call) {
            return Err(StoreError::Unavailable { reason: "a test said so".to_owned(), source: None });
        }
        answer.await
    }
}

impl Intercept for Counted {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }
}
