//! Calls about products.

use super::transport::Call;
use super::{Answer, Client, ClientError};
use crate::wire::{Product, ProductList, SetProductRequest};

type Result<T> = std::result::Result<Answer<T>, ClientError>;

impl Client {
    pub async fn products(&self) -> Result<ProductList> {
        self.ask(Call::get(&["products"])).await
    }

    pub async fn product(&self, product: &str) -> Result<Product> {
        self.ask(Call::get(&["products", product])).await
    }

    /// With `rev`, only if nobody changed it meanwhile.
    pub async fn set_product(
        &self,
        product: &str,
        request: &SetProductRequest,
        rev: Option<u64>,
    ) -> Result<Product> {
        let call = Call::put(&["products", product]).json(request);
        // With a revision, a repetition after a lost reply would be refused by its own effect.
        let call = call.repeatable(rev.is_none());
        self.ask(call.header("if-match", rev.map(|rev| format!("\"rev-{rev}\"")))).await
    }
}
