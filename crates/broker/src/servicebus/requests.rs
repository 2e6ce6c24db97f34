//! What is asked of an entity's `$management`: to complete what was delivered, and its rules.
//!
//! Completions go this way and not by the link, because only an answer tells whether the lock still held: the library
//! takes a refusal on the link for a success.

use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::types::messaging::{Body, Message};
use fe2o3_amqp::types::primitives::{Array, OrderedMap, Uuid, Value};
use fe2o3_amqp_management::error::Error;
use fe2o3_amqp_management::{MgmtClient, Request, Response};

use super::failure::{Failure, PATIENCE};

pub(super) struct Requests {
    client: MgmtClient,
    entity: String,
}

type Fields = OrderedMap<String, Value>;

struct Done;

impl Response for Done {
    const STATUS_CODE: u16 = 200;
    type Body = Body<Value>;
    type Error = Error;

    fn decode_message(_: Message<Self::Body>) -> Result<Self, Error> {
        Ok(Self)
    }
}

macro_rules! request {
    ($name:ident, $operation:literal) => {
        struct $name(Fields);

        impl Request for $name {
            const OPERATION: &'static str = $operation;
            type Response = Done;
            type Body = Fields;

            fn encode_body(self) -> Fields {
                self.0
            }
        }
    };
}

request!(UpdateDisposition, "com.microsoft:update-disposition");
request!(AddRule, "com.microsoft:add-rule");
request!(RemoveRule, "com.microsoft:remove-rule");

fn fields<const N: usize>(pairs: [(&str, Value); N]) -> Fields {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn map<const N: usize>(pairs: [(&str, Value); N]) -> Value {
    Value::Map(pairs.into_iter().map(|(name, value)| (Value::String(name.to_owned()), value)).collect())
}

impl Requests {
    /// `name` is nobody else's on this connection: answers go there.
    pub(super) async fn open(
        session: &mut SessionHandle<()>,
        entity: &str,
        name: &str,
    ) -> Result<Self, Failure> {
        let builder = MgmtClient::builder()
            .management_node_address(format!("{entity}/$management"))
            .client_node_addr(name);
        let client = builder.attach(session).await?;
        Ok(Self { client, entity: entity.to_owned() })
    }

    pub(super) async fn complete(&mut self, lock: [u8; 16]) -> Result<(), Failure> {
        let locks = Value::Array(Array(vec![Value::Uuid(Uuid::from(lock))]));
        let body =
            fields([("disposition-status", Value::String("completed".to_owned())), ("lock-tokens", locks)]);
        self.ask(UpdateDisposition(body)).await
    }

    /// Only what is for this target. Takes what may be done by whoever may listen.
    pub(super) async fn add_rule(&mut self, rule: &str, property: &str, value: &str) -> Result<(), Failure> {
        let properties = map([(property, Value::String(value.to_owned()))]);
        let description = map([("correlation-filter", map([("properties", properties)]))]);
        let body = fields([("rule-name", Value::String(rule.to_owned())), ("rule-description", description)]);
        self.ask(AddRule(body)).await
    }

    pub(super) async fn remove_rule(&mut self, rule: &str) -> Result<(), Failure> {
        self.ask(RemoveRule(fields([("rule-name", Value::String(rule.to_owned()))]))).await
    }

    async fn ask<R: Request<Response = Done>>(&mut self, request: R) -> Result<(), Failure> {
        let late = || Failure::lost(format!("{}/$management does not answer", self.entity));
        match tokio::time::timeout(PATIENCE, self.client.call(request)).await {
            Ok(answer) => answer.map(|Done| ()).map_err(Failure::from),
            Err(_) => Err(late()),
        }
    }

    pub(super) async fn close(self) {
        let _ = self.client.close().await;
    }
}
